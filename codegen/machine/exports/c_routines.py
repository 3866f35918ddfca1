"""C99 source of the matrix operations that a kernel computes itself: sorts, gathers, scatters.

The results are those of `codegen.functions.matrix_routines`. An order is stable, so the algorithm does not matter: few
keys are sorted by insertion, more of them by merging.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.errors import LoweringError
from codegen.functions.matrix_routines import FEW
from codegen.ir.matrix_operation import OWN, MatrixOperation

BEFORE = """
/* whether a key comes before another one; NaN comes last */
static inline int {prefix}_before_({scalar} a, {scalar} b)
{{
    return a < b || (a == a && b != b);
}}
"""
ORDER = """
static int {prefix}_order_(const {scalar} *x, {scalar} *p, long long rows, long long n)
{{
    {scalar} *scratch = n > {few} ? malloc((size_t)n * sizeof *scratch) : NULL;
    if (n > {few} && scratch == NULL) return 1;
    for (long long r = 0; r < rows; r++, x += n, p += n) {{
        {scalar} *from = p, *to = scratch;
        for (long long first = 0; first < n; first += {few}) {{
            long long last = first + {few} < n ? first + {few} : n;
            for (long long i = first; i < last; i++) {{
                long long j = i;
                for (; j > first && {prefix}_before_(x[i], x[(long long)p[j - 1]]); j--) p[j] = p[j - 1];
                p[j] = ({scalar})i;
            }}
        }}
        for (long long width = {few}; width < n; width *= 2) {{
            for (long long first = 0; first < n; first += 2 * width) {{
                long long middle = first + width < n ? first + width : n;
                long long last = middle + width < n ? middle + width : n;
                for (long long i = first, j = middle, k = first; k < last; k++) {{
                    int second = i == middle
                        || (j < last && {prefix}_before_(x[(long long)from[j]], x[(long long)from[i]]));
                    to[k] = second ? from[j++] : from[i++];
                }}
            }}
            {scalar} *other = from;
            from = to;
            to = other;
        }}
        if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
    }}
    free(scratch);
    return 0;
}}
"""
INSERTION = """
static void {prefix}_insertion_(const {scalar} *a, const {scalar} *x, {scalar} *y, long long n, long long m, int right)
{{
    for (long long i = 0; i < m; i++) {{
        long long low = 0, high = n;
        while (low < high) {{
            long long middle = low + (high - low) / 2;
            int before = right ? !{prefix}_before_(x[i], a[middle]) : {prefix}_before_(a[middle], x[i]);
            low = before ? middle + 1 : low;
            high = before ? high : middle;
        }}
        y[i] = ({scalar})low;
    }}
}}
"""
PLACE = """
/* a place that may count from the end; -1 outside of the n places */
static inline long long {prefix}_place_({scalar} p, {scalar} n)
{{
    {scalar} counted = p < 0 ? p + n : p;
    return counted >= 0 && counted < n ? (long long)counted : -1;
}}
"""
GATHER = """
static void {prefix}_gather_(const {scalar} *x, const {scalar} *p, {scalar} *y, long long rows, long long n,
                             long long m, int adds)
{{
    for (long long r = 0; r < rows; r++, x += n) {{
        for (long long k = 0; k < m; k++, p++, y++) {{
            long long at = {prefix}_place_(*p, ({scalar})n);
            {scalar} value = at < 0 ? ({scalar})NAN : x[at];
            *y = adds ? *y + value : value;
        }}
    }}
}}
"""
SCATTER = """
static void {prefix}_scatter_(const {scalar} *x, const {scalar} *p, {scalar} *y, long long rows, long long n,
                              long long m, int adds)
{{
    if (!adds) memset(y, 0, (size_t)(rows * n) * sizeof *y);
    for (long long r = 0; r < rows; r++, y += n) {{
        for (long long k = 0; k < m; k++, p++, x++) {{
            long long at = {prefix}_place_(*p, ({scalar})n);
            if (at >= 0) y[at] += *x;
        }}
    }}
}}
"""
TEXTS = {
    "order": (BEFORE, ORDER), "insertion": (BEFORE, INSERTION), "gather": (PLACE, GATHER), "scatter": (PLACE, SCATTER),
}  # fmt: skip


def own_operation(
    operation: MatrixOperation, arrays: Sequence[str], adds: bool, prefix: str, scalar: str
) -> tuple[str, dict[str, str]]:
    """Return the C expression that carries out an operation on arrays, and all texts that it needs, by name.

    LoweringError for an operation that only a library carries out.

    >>> call, texts = own_operation(MatrixOperation("gather", (1, 5, 3)), ["x", "p", "y"], False, "f", "double")
    >>> call, list(texts)
    ('f_gather_(x, p, y, 1, 5, 3, 0)', ['f_place_', 'f_gather_'])
    """
    kind = operation.kind.removesuffix("_right")
    if operation.kind not in OWN or (adds and kind in ("order", "insertion")):
        raise LoweringError(f"the {operation.description} in C source", do="export the object file")
    marked = [] if kind == "order" else [str(int(adds or operation.kind.endswith("_right")))]
    arguments = [*arrays, *map(str, operation.sizes), *marked]
    helper, text = (text_part.format(prefix=prefix, scalar=scalar, few=FEW) for text_part in TEXTS[kind])
    name = f"{prefix}_{kind}_"
    names = f"{prefix}_{'before' if kind in ('order', 'insertion') else 'place'}_", name
    return f"{name}({', '.join(arguments)})", dict(zip(names, (helper, text), strict=True))
