"""Number formats of lane formulas, with their constants and polynomial coefficients.

A constant in two parts is rounded in the first, and the second has what is left. Polynomials are minimax, by Remez'
algorithm in 60 digits, their coefficients rounded to the format; the errors that are stated include this rounding.
"""

from __future__ import annotations

import struct

from codegen.records import dataclass

Coefficients = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """A binary format: total bits, fraction bits, exponent bias, and derived constants.

    Of the constants, `ln2_high` and `log10_2` are so short in the first part that products with an exponent are exact.
    """

    bits: int
    fraction: int
    bias: int
    exp_range: tuple[float, float]  # outside, exponentials overflow or are 0
    normal_exp: float  # below, results are normal
    exp2_range: tuple[float, float]
    largest_sinh: float  # from here on it overflows
    one_tanh: float  # from here on it is 1
    least_expm1: float  # below, it is -1
    flat_atan: float  # from here on it is pi/2
    huge_angle: float  # from here on sine and cosine are those of the C library
    largest_power: float  # from this logarithm on powers are those of the C library
    log2_e: tuple[float, float]
    log10_e: tuple[float, float]
    log10_2: tuple[float, float]
    ln2: tuple[float, float]
    ln2_high: tuple[float, float]
    half_pi: tuple[float, float, float]
    two_thirds: tuple[float, float]
    exponential: Coefficients  # of (exp(r) - 1 - r)/r**2 for |r| <= log(2)/2
    logarithm: Coefficients  # of (2 atanh(s)/s - 2)/z with z = s**2, for s <= 3 - 2 sqrt(2)
    long_logarithm: Coefficients  # of (2 atanh(s)/s - 2 - 2/3 z)/z**2
    sine: Coefficients  # of (sin(r)/r - 1)/z with z = r**2, for |r| <= pi/4
    cosine: Coefficients  # of (cos(r) - 1 + z/2)/z**2
    arcsine: Coefficients  # of (asin(s)/s - 1)/z with z = s**2, for z <= 1/4
    arctangent: Coefficients  # of (atan(t)/t - 1)/z with z = t**2, for |t| <= tan(pi/8)
    hyperbolic_sine: Coefficients  # of (sinh(x)/x - 1)/z with z = x**2, for |x| <= 0.35

    @property
    def shift(self) -> float:
        """Added to a small number, it leaves the nearest whole number in the lowest bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def tiny(self) -> float:
        """Half the rounding unit: below it, functions with a slope of 1 at zero are their argument."""
        return 2.0 ** -(self.fraction + 2)

    @property
    def large_root(self) -> float:
        """From here on the square root of x**2 + 1 is x."""
        return 2.0 ** (self.fraction // 2 + 3)

    @property
    def subnormal(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    def bits_of(self, value: float) -> int:
        """Return the bits of a number, which is rounded to the format.

        >>> hex(DOUBLE.bits_of(1.0)), hex(SINGLE.bits_of(1.0))
        ('0x3ff0000000000000', '0x3f800000')
        """
        number, word = ("<d", "<q") if self.bits == 64 else ("<f", "<i")
        (bits,) = struct.unpack(word, struct.pack(number, value))
        return int(bits)


# Relative errors below 6e-19 (of exp(r) - 1), 2e-18 and 2e-20 (2 atanh(s)), 7e-18, 2e-18, 2e-18, 3e-18, 2e-18
DOUBLE = Format(
    bits=64, fraction=52, bias=1023,
    exp_range=(-746.0, 710.0), normal_exp=708.0, exp2_range=(-1080.0, 1030.0), largest_sinh=711.0,
    one_tanh=20.0, least_expm1=-45.0, flat_atan=2.0**70, huge_angle=2.0**30, largest_power=700.0,
    log2_e=(1.4426950408889634, 2.0355273740931033e-17),
    log10_e=(0.4342944819032518, 1.098319650216765e-17),
    log10_2=(0.30102999566383914, 1.42050232272661e-13),  # 42 bits and the rest
    ln2=(0.6931471805599453, 2.3190468138462996e-17),
    ln2_high=(0.6931471805598903, 5.497923018708371e-14),  # 42 bits and the rest
    half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),  # the sum has 161 bits
    two_thirds=(0.6666666666666666, 3.700743415417188e-17),
    exponential=(
        0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321613, 0.0013888888888866722,
        0.0001984126988616754, 2.4801587360743605e-05, 2.7557244171805765e-06, 2.7557242622201404e-07,
        2.5109048753558248e-08, 2.092448096812919e-09,
    ),
    logarithm=(
        0.6666666666666735, 0.3999999999941111, 0.285714287432593, 0.22222198476224617, 0.18183569732552068,
        0.1531390330949919, 0.14797508217516278,
    ),
    long_logarithm=(
        0.3999999999999998, 0.2857142857144522, 0.22222222217510426, 0.18181818873513186, 0.15384556652570827,
        0.1333632583064389, 0.11674647587274124, 0.11990438104509173,
    ),
    sine=(
        -0.16666666666666632, 0.00833333333332237, -0.00019841269829771148, 2.755731367863497e-06,
        -2.505075595431875e-08, 1.5896666008223773e-10,
    ),
    cosine=(
        0.0416666666666666, -0.0013888888888874064, 2.480158728944356e-05, -2.7557314340675877e-07,
        2.087572162503593e-09, -1.1359559353420913e-11,
    ),
    arcsine=(
        0.16666666666666666, 0.0749999999999991, 0.04464285714683762, 0.03038194399897382,
        0.02237218008533427, 0.0173522119705075, 0.013973935807973799, 0.011452917891635625,
        0.010489458741851186, 0.00476393437794674, 0.019224704390200457, -0.01760180901550873,
        0.030570323138528935,
    ),
    arctangent=(
        -0.333333333333332, 0.1999999999995366, -0.14285714280203834, 0.11111110783807954, -0.09090897766945569,
        0.0769206036005106, -0.06663105441042826, 0.058478973123184744, -0.05039330557508313, 0.03806494970389946,
        -0.017907339485039225,
    ),
    hyperbolic_sine=(
        0.16666666666666677, 0.008333333333320666, 0.00019841269888862435, 2.7557241197409536e-06,
        2.5110166452160284e-08,
    ),
)  # fmt: skip

# Relative errors below 4e-9 (of exp(r) - 1), 1e-9 and 3e-12 (2 atanh(s)), 4e-9, 3e-10, 7e-10, 3e-9, 5e-10
SINGLE = Format(
    bits=32, fraction=23, bias=127,
    exp_range=(-104.0, 89.0), normal_exp=87.0, exp2_range=(-152.0, 130.0), largest_sinh=90.0,
    one_tanh=10.0, least_expm1=-20.0, flat_atan=2.0**40, huge_angle=2.0**15, largest_power=87.0,
    log2_e=(1.4426950216293335, 1.925963033500011e-08),
    log10_e=(0.4342944920063019, -1.0103049952192578e-08),
    log10_2=(0.30103302001953125, -3.024355464731343e-06),  # 16 bits and the rest
    ln2=(0.6931471824645996, -1.9046542121259336e-09),
    ln2_high=(0.693145751953125, 1.428606765330187e-06),  # 16 bits and the rest
    half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),  # the sum has 75 bits
    two_thirds=(0.6666666865348816, -1.9868215517249155e-08),
    exponential=(
        0.5, 0.1666666716337204, 0.04166634753346443, 0.008333333767950535, 0.0013941642828285694,
        0.00019885618530679494,
    ),
    logarithm=(0.6666677594184875, 0.39977481961250305, 0.29873624444007874),
    long_logarithm=(0.3999999761581421, 0.28571876883506775, 0.22184893488883972, 0.194700226187706),
    sine=(-0.1666666716337204, 0.008333329111337662, -0.00019839292508549988, 2.7179337394045433e-06),
    cosine=(0.04166664555668831, -0.001388730015605688, 2.4431297788396478e-05),
    arcsine=(
        0.1666666716337204, 0.07500018924474716, 0.04461085423827171, 0.031042354181408882, 0.017234334722161293,
        0.033737000077962875,
    ),
    arctangent=(
        -0.3333331346511841, 0.19998443126678467, -0.14242976903915405, 0.10589475929737091, -0.060667142271995544,
    ),
    hyperbolic_sine=(0.1666666716337204, 0.008333287201821804, 0.00019906136731151491),
)  # fmt: skip
