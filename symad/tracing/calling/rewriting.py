"""Rewrite a user's code so that its calls and operations ask a dispatcher.

This is the only way to replace `math.sin(x)` or `helper(x)` without a change of the user's module. The source of the
function is parsed, `f(x)` becomes `CALLEE(f)(x)`, and the compiled result runs with the function's own global names and
variables. If that is not enough, `a + b` becomes `VALUE(a) + VALUE(b)`, `a.b` becomes `VALUE(a).b`, and so on.
Nothing of the user's is replaced: names keep their real objects, also in other threads.

The source is only taken where Python compiles it to exactly the code that the function has. The new code has the file,
lines and columns of the old one.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from codegen.records import dataclass
from symad.reach.code_facts import codes_of, note_original, original_of
from symad.tracing.calling.loop_steps import calls_of_steps
from symad.tracing.calling.user_place import FILES

CALLEE, VALUE, ITEM, PLACE, RESULT = (f"symad: {what}" for what in ("callee", "value", "item", "place", "result"))
TREES = 64  # files whose statements are known
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_FAILURES = (SyntaxError, ValueError, RecursionError, MemoryError)
_provided: dict[str, Any] = {}  # the functions in place of the constants above; filled once


@dataclass(frozen=True)
class Style:
    """The style of rewriting: only calls, or `operators`, attributes and items too; loops as calls of their `steps`."""

    operators: bool = False
    steps: bool = False


def provide(values: Mapping[str, Any]) -> None:
    """Set the functions that replace the constants in rewritten code."""
    _provided.update(values)


def is_rewritten(code: CodeType) -> bool:
    """Whether code is a result of `rewritten`, or is nested in one."""
    return original_of(code) is not code


@lru_cache(maxsize=FILES)
def rewritten(file: str, code: CodeType, style: Style) -> CodeType | None:
    """Return the code of a file in another style; None if its source is not available."""
    source = _source(file)
    statement = source.statement_at(code.co_firstlineno)
    if statement is None:
        return None
    place = _place_of(code, source.parsed(statement))
    tree = None if place is None else source.parsed(statement)
    return None if place is None or tree is None else _rewritten_at(place, tree, code, style)


def evaluated(source: str, mode: str) -> CodeType:
    """Return the code of a text for eval or exec, with its calls dispatched."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of a constant that is called
        tree: Any = compile(source, "<string>", mode, flags=ast.PyCF_ONLY_AST, dont_inherit=True)
        _dispatch(tree, Style())
        code: CodeType = compile(ast.fix_missing_locations(tree), "<string>", mode, flags=0, dont_inherit=True)
    filled, original = _linked(code), compile(source, "<string>", mode, dont_inherit=True)
    for part in codes_of(filled):
        note_original(part, original)
    return filled


class _Statement(NamedTuple):
    """A statement of a file or class: its first and last lines, and the headers of the classes around it."""

    start: int
    end: int
    headers: tuple[str, ...]


@dataclass(frozen=True)
class _SourceFile:
    """The statements of a file in order, those of classes one by one, and the names that it imports.

    Python 3.11 compiles `np.sin(x)` differently if `np` is an imported name.
    """

    lines: list[str]
    statements: list[_Statement]
    imported: list[str]

    def statement_at(self, line: int) -> _Statement | None:
        place = bisect_right(self.statements, line, key=lambda statement: statement.start) - 1
        return self.statements[place] if place >= 0 and line <= self.statements[place].end else None

    def parsed(self, statement: _Statement) -> ast.Module | None:
        """Return the tree of a statement after imports, in its classes, with its lines in the file."""
        start, end, headers = statement
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse("".join([*headers, *self.lines[start - 1 : end]]))
        except _FAILURES:
            return None
        ast.increment_lineno(tree, start - 1 - len(headers))
        if self.imported:
            imports = ast.Import([ast.alias("a", name) for name in self.imported])
            tree.body.insert(0, ast.fix_missing_locations(imports))
        return tree


def _source(file: str) -> _SourceFile:
    lines = linecache.getlines(file)
    known = _sources.get(file)
    if known is not None and known.lines is lines:
        return known
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has warned about the source when it was imported
            body = ast.parse("".join(lines)).body
    except _FAILURES:
        body = []
    while len(_sources) >= TREES:
        _sources.pop(next(iter(_sources)), None)
    _sources[file] = source = _SourceFile(lines, sorted(_statements(body)), sorted(set(_imported(body))))
    return source


_sources: dict[str, _SourceFile] = {}  # by file; bound: TREES


def _statements(body: list[ast.stmt]) -> Iterator[_Statement]:
    """Yield the statements of a module; in place of a class those in it."""
    waiting: list[tuple[ast.stmt, tuple[str, ...]]] = [(statement, ()) for statement in body]
    for statement, headers in waiting:  # which grows
        if isinstance(statement, ast.ClassDef) and statement.body[0].lineno > statement.lineno:
            within = (*headers, f"{' ' * statement.col_offset}class {statement.name}:\n")
            waiting += [(inner, within) for inner in statement.body]
        else:
            yield _Statement(_first_line(statement), statement.end_lineno or statement.lineno, headers)


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements of a module bind by imports."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*")
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            waiting += ast.iter_child_nodes(node)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _compiled(tree: ast.Module, code: CodeType) -> CodeType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of a constant that is called
            unit: CodeType = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
            return unit
    except _FAILURES:
        return None


def _place_of(code: CodeType, tree: ast.Module | None) -> int | None:
    """Return the position of code among the functions of its name and line in a source, None if it is not there."""
    compiled = None if tree is None else _compiled(tree, code)
    if compiled is None:
        return None
    alike = [part for part in codes_of(compiled) if _begins_as(part, code)]
    return next((place for place, part in enumerate(alike) if _is_same(part, code)), None)


def _begins_as(code: CodeType, other: CodeType) -> bool:
    return (code.co_name, code.co_firstlineno) == (other.co_name, other.co_firstlineno)


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Whether two pieces of code agree except in their names and files."""
    parts = ("co_code", "co_names", "co_freevars", "co_varnames", "co_linetable")
    if any(getattr(code, part) != getattr(other, part) for part in parts):
        return False
    return len(code.co_consts) == len(other.co_consts) and all(
        _is_same(a, b)
        if isinstance(a, CodeType) and isinstance(b, CodeType)
        else (type(a), repr(a)) == (type(b), repr(b))
        for a, b in zip(code.co_consts, other.co_consts, strict=True)
    )


def _rewritten_at(place: int, tree: ast.Module, code: CodeType, style: Style) -> CodeType | None:
    """Return the rewritten code of one of the functions in a tree, which is changed."""
    if style.steps and not calls_of_steps(tree, code.co_name, code.co_firstlineno):
        style = Style(style.operators)
    _dispatch(tree, style)
    compiled = _compiled(ast.fix_missing_locations(tree), code)
    if compiled is None:
        return None
    alike = [part for part in codes_of(compiled) if _begins_as(part, code)]
    if place >= len(alike) or alike[place].co_freevars != code.co_freevars:
        return None
    filled = _linked(alike[place])
    for part, original in _pairs(filled, code):
        note_original(part, original)
    return filled


def _pairs(code: CodeType, original: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield pieces of rewritten code with their originals; a loop's step belongs to the whole."""
    waiting: dict[tuple[str, int], list[CodeType]] = {}
    for part in codes_of(original):
        waiting.setdefault((part.co_name, part.co_firstlineno), []).append(part)
    for part in codes_of(code):
        same = waiting.get((part.co_name, part.co_firstlineno))
        yield part, same.pop(0) if same else original


def _linked(code: CodeType) -> CodeType:
    """Return code with the provided functions in place of the constants."""
    consts = tuple(
        _linked(part) if isinstance(part, CodeType) else _provided.get(part, part) if type(part) is str else part
        for part in code.co_consts
    )
    kind = code.co_name.rstrip("0123456789")
    name = {"__step_": "a loop", "__if_": "an if statement"}.get(kind, code.co_name)  # as messages have it
    return code.replace(co_consts=consts, co_name=name)


# The changes of the tree: no recursion, since sums of a thousand terms are a thousand nodes deep.


def _dispatch(tree: ast.AST, style: Style) -> None:
    """Insert calls of the dispatcher for callees and, if the style says so, for operands and results."""
    if style.operators:
        _dispatch_results(tree)
    for parent, field, index in list(_expressions(tree)):
        name = _question_at(parent, field, index) if style.operators else CALLEE if _is_callee(parent, field) else ""
        node = getattr(parent, field) if index is None else getattr(parent, field)[index]
        if not name or isinstance(node, ast.Constant):
            continue
        asked = ast.Call(ast.Constant(name), [node], [])
        for part in (asked, asked.func):
            ast.copy_location(part, node)
        if index is None:
            setattr(parent, field, asked)
        else:
            getattr(parent, field)[index] = asked


def _dispatch_results(tree: ast.AST) -> None:
    """Let the dispatcher compute `a += c`, and `a = b + c` if `a` is changed: the array may be a traced one."""
    nodes = list(ast.walk(tree))
    targets: list[ast.expr] = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    targets += [node.value for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    changed = {target.id for target in targets if isinstance(target, ast.Name)}
    for node in nodes:
        for field in ("body", "orelse", "finalbody"):
            if isinstance(statements := getattr(node, field, None), list):
                statements[:] = map(_assignment, statements)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or changed.isdisjoint(getattr(target, "id", "") for target in node.targets):
            continue
        value = node.value
        if isinstance(value, ast.BinOp) and type(value.op) in _OPERATORS:
            operator = ast.Constant(getattr(value, "prefix", "") + _OPERATORS[type(value.op)])
            node.value = ast.Call(ast.Constant(RESULT), [operator, value.left, value.right], [])
            for part in (node.value, node.value.func, operator):
                ast.copy_location(part, value)


def _assignment(statement: ast.AST) -> ast.AST:
    """Return `a += c` as `a = a + c`, whose operator is the one in place; other statements unchanged."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return statement
    if type(statement.op) not in _OPERATORS:
        return statement
    before = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
    value = ast.copy_location(ast.BinOp(before, statement.op, statement.value), statement)
    vars(value)["prefix"] = "i"
    return ast.copy_location(ast.Assign([statement.target], value), statement)


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip


def _is_callee(parent: ast.AST, field: str) -> bool:
    if isinstance(parent, ast.Call) and field == "func":
        return not (isinstance(parent.func, ast.Name) and parent.func.id == "super")  # which looks at its caller
    return field == "decorator_list"


def _question_at(parent: ast.AST, field: str, index: int | None) -> str:
    """Return the question to the dispatcher about an expression, "" for none."""
    if _is_callee(parent, field):
        return CALLEE
    if isinstance(parent, ast.Subscript) and field == "value":
        return ITEM if isinstance(parent.ctx, ast.Load) else PLACE
    if isinstance(parent, ast.Compare):
        operator = parent.ops[index or 0]
        return "" if isinstance(operator, _WITHOUT_LEFT if field == "left" else ast.Is | ast.IsNot) else VALUE
    return VALUE if field in _OPERANDS.get(type(parent), ()) else ""


_WITHOUT_LEFT = ast.Is | ast.IsNot | ast.In | ast.NotIn
_OPERANDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.AugAssign: ("value",), ast.Attribute: ("value",),
    ast.For: ("iter",), ast.comprehension: ("iter",), ast.withitem: ("context_expr",),
}  # fmt: skip
_UNCHANGED = frozenset({"annotation", "returns", "pattern", "type_params"})  # fields without rewriting


def _expressions(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield the places of expressions: parent, field and index."""
    waiting = [tree]
    for node in waiting:  # which grows
        for field, value in ast.iter_fields(node):
            if field in _UNCHANGED:
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    waiting.append(child)
                    if isinstance(child, ast.expr):
                        yield node, field, index
