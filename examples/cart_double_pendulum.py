"""A double pendulum on a cart, from sympy.physics.mechanics to one native kernel with all its Jacobians.

Kane's method writes M(q) x' = f(q, u, F, p) in functions of time such as q1(t) and u1(t). These expressions are taken
as they come: no substitution of symbols by hand. One kernel computes M and f, and their derivatives with respect to
coordinates, speeds and parameters; SymPy's own diff and lambdify say the same. Another one gives the accelerations and
their Jacobian: the growth rates of the upright pendulum, and a simulation that keeps its energy.
"""

import numpy as np
import sympy as sp
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

import symad as sa

PARAMETERS = np.array([3.0, 1.0, 0.5, 0.8, 0.6, 9.81])  # masses, lengths, gravity
UPRIGHT = np.array([0.0, np.pi, np.pi])


def equations_of_motion():
    """Return coordinates, speeds, parameters, the force on the cart, mass matrix and forcing, by Kane's method."""
    q, u, force = dynamicsymbols("q:3"), dynamicsymbols("u:3"), dynamicsymbols("F")
    masses, lengths, g = sp.symbols("m:3", positive=True), sp.symbols("l:2", positive=True), sp.Symbol("g")
    frame, origin, point = ReferenceFrame("N"), Point("O"), Point("P0")
    origin.set_vel(frame, 0)
    point.set_pos(origin, q[0] * frame.x)
    point.set_vel(frame, u[0] * frame.x)
    bodies, loads = [Particle("cart", point, masses[0])], [(point, force * frame.x)]
    for k, (angle, speed, length) in enumerate(zip(q[1:], u[1:], lengths, strict=True), start=1):
        rod = frame.orientnew(f"B{k}", "Axis", [angle, frame.z])
        rod.set_ang_vel(frame, speed * frame.z)
        end = point.locatenew(f"P{k}", -length * rod.y)
        end.v2pt_theory(point, frame, rod)
        bodies.append(Particle(f"bob{k}", end, masses[k]))
        loads.append((end, -masses[k] * g * frame.y))
        point = end
    kinematics = [coordinate.diff() - speed for coordinate, speed in zip(q, u, strict=True)]
    kane = KanesMethod(frame, q_ind=q, u_ind=u, kd_eqs=kinematics)
    kane.kanes_equations(bodies, loads)
    return q, u, [*masses, *lengths, g], force, kane.mass_matrix_full, kane.forcing_full


def with_jacobians(system):
    """Return a function that gives mass matrix and forcing, and their Jacobians in coordinates, speeds, parameters."""
    jacobians = sa.jacobian(system, argnums=(0, 1, 2))
    return lambda q, u, p, force: (system(q, u, p, force), jacobians(q, u, p, force))


def sympys_answer(q, u, parameters, force, matrix):
    """Return the same by SymPy: a function for a matrix, and one for its derivatives in each list of symbols."""
    arguments = [*q, *u, *parameters, force]
    derivatives = [[matrix.diff(symbol) for symbol in symbols] for symbols in (q, u, parameters)]
    return sp.lambdify(arguments, matrix, cse=True), sp.lambdify(arguments, derivatives, cse=True)


def largest_difference(found, wanted):
    """Return the largest difference, relative to the size of the array."""
    return np.max(np.abs(found - wanted)) / max(1.0, np.max(np.abs(wanted)))


def energy(q, u, p):
    """Return kinetic plus potential energy, written down from the positions of the three masses."""
    m, (first, second), g = p[:3], p[3:5], p[5]
    velocities = [np.array([u[0], 0.0])]
    height = [0.0]
    for angle, speed, length in zip(q[1:], u[1:], (first, second), strict=True):
        velocities.append(velocities[-1] + length * speed * np.array([np.cos(angle), np.sin(angle)]))
        height.append(height[-1] - length * np.cos(angle))
    return sum(mass * (v @ v / 2 + g * h) for mass, v, h in zip(m, velocities, height, strict=True))


def main():
    """Derive, compile, compare with SymPy, linearise and simulate."""
    q, u, parameters, force, mass, forcing = equations_of_motion()
    arguments = [sp.Array(q), sp.Array(u), sp.Array(parameters), force]
    system = sa.from_sympy(arguments, {"mass": mass, "forcing": forcing})
    rng = np.random.default_rng(7)
    point = (rng.normal(size=3), rng.normal(size=3), PARAMETERS, 1.5)
    kernel = sa.compile(with_jacobians(system), *point)
    (values, jacobians), flat = kernel(*point), np.concatenate([np.atleast_1d(part) for part in point])
    print(f"SymPy's mass matrix and forcing: {sp.count_ops(mass) + sp.count_ops(forcing)} operations")
    print(f"the kernel: mass matrix {mass.shape}, forcing {forcing.shape} and Jacobians in 3 + 3 + 6 variables,")
    print(f"  {sa.trace(with_jacobians(system), *point).count_ops()} operations")

    worst = 0.0
    for name, matrix in (("mass", mass), ("forcing", forcing)):
        value, derivatives = sympys_answer(q, u, parameters, force, matrix)
        worst = max(worst, largest_difference(values[name], value(*flat)))
        for found, wanted in zip(jacobians[name], derivatives(*flat), strict=True):
            worst = max(worst, largest_difference(found, np.moveaxis(np.array(wanted), 0, -1)))
    print(f"largest difference from sympy.diff and sympy.lambdify: {worst:.0e}")
    assert worst < 1e-12

    def motion(state, p, force):
        parts = system(state[:3], state[3:], p, force)
        return np.linalg.solve(parts["mass"], parts["forcing"])[:, 0]

    rate = sa.compile(motion, np.zeros(6), PARAMETERS, 0.0)
    linearised = sa.compile(sa.jacobian(motion), np.zeros(6), PARAMETERS, 0.0)
    growth = np.linalg.eigvals(linearised(np.concatenate([UPRIGHT, np.zeros(3)]), PARAMETERS, 0.0))
    print("growth rates of the upright pendulum:", np.sort(growth.real[growth.real > 1e-6]).round(4))

    state, step = np.array([0.0, 2.0, 2.5, 0.0, 0.0, 0.0]), 1e-3
    start = energy(state[:3], state[3:], PARAMETERS)
    for _ in range(5000):  # the classical method of Runge and Kutta
        k1 = rate(state, PARAMETERS, 0.0)
        k2 = rate(state + step / 2 * k1, PARAMETERS, 0.0)
        k3 = rate(state + step / 2 * k2, PARAMETERS, 0.0)
        k4 = rate(state + step * k3, PARAMETERS, 0.0)
        state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    drift = abs(energy(state[:3], state[3:], PARAMETERS) - start)
    print(f"five seconds of free motion from rest: the energy drifts by {drift:.0e} J")
    assert drift < 1e-6


if __name__ == "__main__":
    main()
