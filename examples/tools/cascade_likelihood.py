"""The gradient of a likelihood of a reaction network, which is what AMICI makes: a cascade of three kinases.

The model is that of Huang and Ferrell, "Ultrasensitivity in the mitogen-activated protein kinase cascade", PNAS 93
(1996): ten steps in which an enzyme binds, lets go of, or changes a substrate, 22 substances and 30 rates. Data of two
substances are drawn from the model. The gradient in the logarithms of all rates: by the adjoint system, by forward
sensitivities, by differences of SciPy's solutions, and, where it is installed, by diffrax.
"""

import importlib.util
import time

import numpy as np
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array

import symad as sa

NAMES = ["K3", "K3*", "K2", "K2P", "K2PP", "K1", "K1P", "K1PP", "E1", "E2", "P2", "P1"]  # kinases, phosphatases
STEPS = [  # enzyme, substrate, product
    ("E1", "K3", "K3*"), ("E2", "K3*", "K3"), ("K3*", "K2", "K2P"), ("P2", "K2P", "K2"), ("K3*", "K2P", "K2PP"),
    ("P2", "K2PP", "K2P"), ("K2PP", "K1", "K1P"), ("P1", "K1P", "K1"), ("K2PP", "K1P", "K1PP"), ("P1", "K1PP", "K1P"),
]  # fmt: skip
TOTALS = {"K3": 0.003, "K2": 1.2, "K1": 1.2, "E1": 3e-5, "E2": 3e-4, "P2": 3e-4, "P1": 0.12}  # micromolar
ENZYME, SUBSTRATE, PRODUCT = np.array([[NAMES.index(name) for name in step] for step in STEPS]).T
COMPLEX = len(NAMES) + np.arange(len(STEPS))
SIZE = len(NAMES) + len(STEPS)
START = np.array([TOTALS.get(name, 0.0) for name in NAMES] + [0.0] * len(STEPS))
RATES = np.repeat([1000.0, 150.0, 150.0], len(STEPS))  # of binding, of letting go, of changing: a minute
SEEN = [NAMES.index("K2PP"), NAMES.index("K1PP")]
TIMES = np.linspace(0.0, 200.0, 21)
SPREAD = 0.02
TOLERANCES = {"rtol": 1e-6, "atol": 1e-10}


def network():
    """Return what one binding, and one change, of each step does to all substances."""
    rows, columns, numbers = [], [], []
    for k in range(len(STEPS)):
        bound, changed = k, len(STEPS) + k
        for place, column, number in (
            (ENZYME[k], bound, -1), (SUBSTRATE[k], bound, -1), (COMPLEX[k], bound, 1),
            (ENZYME[k], changed, 1), (PRODUCT[k], changed, 1), (COMPLEX[k], changed, -1),
        ):  # fmt: skip
            rows.append(place), columns.append(column), numbers.append(number)
    return csr_array((numbers, (rows, columns)), (SIZE, 2 * len(STEPS)), dtype=float)


NETWORK = network()


def right_hand_side(t, y, logarithms):
    """Return how fast each substance becomes more; parameters are logarithms of rates, over those of the paper."""
    binding, leaving, changing = np.reshape(np.exp(logarithms) * RATES, (3, len(STEPS)))
    bound = binding * y[ENZYME] * y[SUBSTRATE] - leaving * y[COMPLEX]
    return NETWORK @ np.concatenate([bound, changing * y[COMPLEX]])


def misfit(y, data):
    """Return minus the logarithm of the likelihood, but for a constant."""
    return np.sum(((y[:, SEEN] - data) / SPREAD) ** 2) / 2


def timed(function, calls=3):
    """Return what a function gives, the processor seconds of its first call, and of the best of some more."""
    times = []
    for _ in range(calls + 1):
        start = time.process_time()
        found = function()
        times.append(time.process_time() - start)
    return found, times[0], min(times[1:] or times)


def differences(at, data):
    """Return the gradient by SciPy alone: central differences of solutions, which have to be better for that."""

    def value(logarithms):
        found = solve_ivp(
            right_hand_side, TIMES[[0, -1]], START, "LSODA", TIMES, args=(logarithms,), rtol=1e-9, atol=1e-13
        )
        return misfit(found.y.T, data)

    steps = 1e-3 * np.eye(at.size)
    return np.array([(value(at + step) - value(at - step)) / 2e-3 for step in steps])


def by_diffrax(data):
    """Return a function that gives the gradient by diffrax, by its adjoint of discrete steps."""
    import diffrax  # noqa: PLC0415 - where it is installed
    import jax  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    net, jnp = jax.numpy.array(NETWORK.toarray()), jax.numpy

    def slope(t, y, logarithms):
        binding, leaving, changing = jnp.reshape(jnp.exp(logarithms) * RATES, (3, len(STEPS)))
        bound = binding * y[ENZYME] * y[SUBSTRATE] - leaving * y[COMPLEX]
        return net @ jnp.concatenate([bound, changing * y[COMPLEX]])

    def loss(logarithms):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(slope), diffrax.Kvaerno5(), TIMES[0], TIMES[-1], 1e-4, START, logarithms, max_steps=2**14,
            saveat=diffrax.SaveAt(ts=TIMES), stepsize_controller=diffrax.PIDController(**TOLERANCES),
        )  # fmt: skip
        return jnp.sum(((found.ys[:, jnp.array(SEEN)] - data) / SPREAD) ** 2) / 2

    gradient = jax.jit(jax.grad(loss))
    return lambda at: np.asarray(gradient(at))


def main():
    at = 0.1 * np.random.default_rng(1).normal(size=RATES.size)
    start = time.process_time()
    system = sa.ode(right_hand_side, START, (np.zeros(RATES.size),))
    data = system.solve((TIMES[0], TIMES[-1]), np.zeros(RATES.size), times=TIMES, **TOLERANCES).y[SEEN].T
    data = data + SPREAD * np.random.default_rng(2).normal(size=data.shape)
    print(f"{SIZE} substances, {RATES.size} rates; built in {time.process_time() - start:.2f} s")

    method = "CVODE" if importlib.util.find_spec("sksundae") else "BDF"

    def forward():
        found = system.solve((TIMES[0], TIMES[-1]), at, times=TIMES, sensitivities=1, method=method, **TOLERANCES)
        slopes = (found.y[SEEN].T - data) / SPREAD**2  # a row for each time
        return np.einsum("tk,kpt->p", slopes, found.sensitivities[SEEN])

    def adjoint():
        return system.value_and_grad(lambda y, _: misfit(y, data), TIMES, at, **TOLERANCES)[1]

    ways = {"symad, forward": forward, "symad, adjoint": adjoint, "SciPy, differences": lambda: differences(at, data)}
    if importlib.util.find_spec("diffrax"):
        gradient = by_diffrax(data)
        ways["diffrax"] = lambda: gradient(at)
    found = {}
    for name, way in ways.items():
        found[name], first, then = timed(way, 0 if "differences" in name else 3)
        print(f"  {name}: {first:.2f} s, then {1e3 * then:.0f} ms")
    scale = np.max(np.abs(found["symad, forward"]))
    for name, gradient in found.items():
        error = np.max(np.abs(gradient - found["symad, forward"])) / scale
        print(f"  {name}: {error:.0e} from forward sensitivities")
        assert error < 1e-4, name


if __name__ == "__main__":
    main()
