"""pydy with symad's kernels: the equations of motion of a pendulum of many links on a cart, a model that pydy brings.

A generator is a subclass of pydy's: mass matrix and right-hand side come from one kernel. Printed: seconds to build and
microseconds a call, pydy's default generator and ours.
"""

import time

import numpy as np
import pydy.codegen.ode_function_generators as generators
from pydy.models import n_link_pendulum_on_cart

import codegen

LINKS = 8


class KernelGenerator(generators.LambdifyODEFunctionGenerator):
    """Evaluates with machine code of `codegen.lambdify`, whatever form the system's equations have."""

    def _lambdify(self, outputs):
        return codegen.lambdify(self.inputs, outputs)


def built(generator, system):
    """Return the function of pydy for a generator, and the seconds that it took."""
    start = time.process_time()
    kane = system.eom_method
    function = generators.generate_ode_function(
        kane.forcing_full, system.coordinates, system.speeds, system.constants_symbols,
        mass_matrix=kane.mass_matrix_full, specifieds=system.specifieds_symbols, generator=generator,
    )  # fmt: skip
    return function, time.process_time() - start


def seconds_a_call(function, arguments, calls=200):
    """Return the best of some calls."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def swing(generator):
    """Return the states of a pendulum of 2 links at some times: pydy's `System` with a generator."""
    system = n_link_pendulum_on_cart(2, cart_force=False)
    system.times = np.linspace(0.0, 1.0, 5)
    system.constants = dict.fromkeys(system.constants_symbols, 1.0)
    system.initial_conditions = dict.fromkeys(system.states, 0.1)
    system.generate_ode_function(generator=generator)
    return system.integrate()


def main():
    system = n_link_pendulum_on_cart(LINKS, cart_force=True)
    states = np.linspace(0.1, 0.9, 2 * (LINKS + 1))
    arguments = states, 0.0, np.array([2.0]), np.linspace(0.5, 1.5, len(system.constants_symbols))
    found = []
    for name, generator in (("lambdify, pydy's default", "lambdify"), ("symad", KernelGenerator)):
        function, seconds = built(generator, system)
        found.append(function(*arguments))
        print(f"{name}: built in {seconds:.2f} s, {1e6 * seconds_a_call(function, arguments):.0f} us a call")
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(swing(KernelGenerator), swing("lambdify"), rtol=1e-6, atol=1e-9)


if __name__ == "__main__":
    main()
