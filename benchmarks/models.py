"""Vector-valued functions whose Jacobians are wanted: harmonics, a reaction with diffusion, a camera."""

from __future__ import annotations

from math import factorial, pi, sqrt
from typing import Any

import numpy as np

DEGREE = 8
FEED, REMOVAL, DIFFUSION = 3.4, 1.0, 0.002


def spherical_harmonics(x: Any, xp: Any = np) -> Any:
    """Return the real, orthonormal spherical harmonics of degree 1 to 8 in the direction of (x, y, z), 80 values.

    The part in z follows Legendre's recurrence without the factor (x² + y²)^(m/2), which goes with cos and sin of m phi
    as the real and imaginary part of (x + i y)^m: no angle, and no pole.
    """
    radius = xp.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    x, y, z = x[0] / radius, x[1] / radius, x[2] / radius
    values: dict[tuple[int, int], Any] = {}
    even, odd, first = 1.0, 0.0, 1.0
    for m in range(DEGREE + 1):
        before, legendre = 0.0, first
        for degree in range(m, DEGREE + 1):
            values[degree, m] = _norm(degree, m) * (legendre * even)
            if m:
                values[degree, -m] = _norm(degree, m) * (legendre * odd)
            following = ((2 * degree + 1) * z * legendre - (degree + m) * before) / (degree - m + 1)
            before, legendre = legendre, following
        even, odd = x * even - y * odd, x * odd + y * even
        first = (2 * m + 1) * first
    return xp.stack([values[key] for key in sorted(values) if key != (0, 0)])


def _norm(degree: int, m: int) -> float:
    """Return the factor that makes a real harmonic orthonormal."""
    ratio = factorial(degree - m) / factorial(degree + m)
    return sqrt((2 if m else 1) * (2 * degree + 1) / (4 * pi) * ratio)


def brusselator_residual(x: Any, xp: Any = np) -> Any:
    """Return the right-hand side of the Brusselator on a periodic square grid: both species, row by row."""
    side = round(sqrt(x.shape[0] / 2))
    u, v = x[: side * side].reshape(side, side), x[side * side :].reshape(side, side)
    reaction = u * u * v
    rate_u = REMOVAL + reaction - (FEED + 1) * u + DIFFUSION * side**2 * _laplacian(u, xp)
    rate_v = FEED * u - reaction + DIFFUSION * side**2 * _laplacian(v, xp)
    return xp.concatenate([rate_u.reshape(-1), rate_v.reshape(-1)])


def _laplacian(u: Any, xp: Any) -> Any:
    return xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1) - 4 * u


def reprojection_error(x: Any, xp: Any = np) -> Any:
    """Return where a camera sees a point, less where it was seen: 2 values of 9 camera and 3 point coordinates.

    The camera is a rotation vector, a translation, a focal length and two coefficients of radial distortion, as in
    the data sets "Bundle Adjustment in the Large" (Agarwal and others, 2010).
    """
    turn, shift, focal, second, fourth, point = x[0:3], x[3:6], x[6], x[7], x[8], x[9:12]
    angle = xp.sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
    cosine, sine = xp.cos(angle), xp.sin(angle)
    axis = [turn[k] / angle for k in range(3)]
    along = (axis[0] * point[0] + axis[1] * point[1] + axis[2] * point[2]) * (1 - cosine)
    across = [axis[k - 2] * point[k - 1] - axis[k - 1] * point[k - 2] for k in range(3)]
    seen = [point[k] * cosine + across[k] * sine + axis[k] * along + shift[k] for k in range(3)]
    u, v = -seen[0] / seen[2], -seen[1] / seen[2]
    square = u * u + v * v
    scale = focal * (1 + square * (second + fourth * square))
    return xp.stack([scale * u - 12.5, scale * v + 7.25])


MASS, ARM, DRAG = 1.2, 0.17, 0.016
INERTIA = (0.012, 0.014, 0.021)


def rigid_body(x: Any, xp: Any = np) -> Any:
    """Return the rates of a vehicle with four rotors: 12 of 12 states and 4 thrusts.

    The states are position, velocity, three angles (roll, pitch, yaw) and the turning rates of the body.
    """
    velocity, roll, pitch, yaw, turning, thrust = x[3:6], x[6], x[7], x[8], x[9:12], x[12:16]
    sr, cr, sp, cp, sy, cy = xp.sin(roll), xp.cos(roll), xp.sin(pitch), xp.cos(pitch), xp.sin(yaw), xp.cos(yaw)
    lift = (thrust[0] + thrust[1] + thrust[2] + thrust[3]) / MASS
    speed = xp.sqrt(velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2)
    upward = [cr * sp * cy + sr * sy, cr * sp * sy - sr * cy, cr * cp]
    gravity = [0.0, 0.0, 9.81]
    rates = [velocity[k] for k in range(3)]
    rates += [lift * upward[k] - gravity[k] - DRAG / MASS * speed * velocity[k] for k in range(3)]
    p, q, r = turning[0], turning[1], turning[2]
    rates += [p + (q * sr + r * cr) * (sp / cp), q * cr - r * sr, (q * sr + r * cr) / cp]
    moments = [ARM * (thrust[1] - thrust[3]), ARM * (thrust[2] - thrust[0]),
               DRAG * (thrust[0] - thrust[1] + thrust[2] - thrust[3])]  # fmt: skip
    a, b, c = INERTIA
    rates += [
        (moments[0] + (b - c) * q * r) / a,
        (moments[1] + (c - a) * p * r) / b,
        (moments[2] + (a - b) * p * q) / c,
    ]
    return xp.stack(rates)
