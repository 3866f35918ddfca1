"""Loops whose steps are functions: another form of a function's code, for those with too many paths.

A loop with a condition inside has a path for each way through all of its steps. Where its step is a function of the
variables that it assigns, the paths of each step are merged as those of any call (see `merged_calls`). So the source of
the function is read, every loop in it becomes a call of `STEPPED` with such a function, and what Python makes of that
takes the place of the function's code while it is traced. The source is only taken where Python makes the same code
of it as the function has, and a loop stays as it is where a function of its own would compute something else.
"""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from threading import Lock
from types import CodeType, FunctionType, MethodType
from typing import Any

from symad.reach.code_facts import codes_of
from symad.tracing.calling.user_place import FILES, is_library

STEPPED = "symad: a loop whose steps are calls"  # the constant in whose place the function stands that runs the loop
LEFT = "symad: a variable that is not bound"
STEPPED_BY: list[Any] = []  # what runs such a loop, and what stands for a variable that is not bound
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_REFUSED = (
    ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal, ast.Delete, ast.Import,
    ast.ImportFrom, ast.Match,
)  # fmt: skip
_IN_PLACE = frozenset({"sort", "fill", "put", "partition", "itemset", "resize", "setfield", "at"})


def functions_with(codes: Iterable[CodeType], among: Iterable[Any]) -> list[FunctionType]:
    """Return those of the user's functions that have some code, in themselves or in a function inside.

    They are looked for among values, in classes and under decorators too.
    """
    wanted = {(code.co_filename, name) for code in codes for name in _around(code.co_qualname)}
    found = dict[FunctionType, None]()
    waiting = list(among)
    while waiting:
        value = waiting.pop()
        if isinstance(value, type) and value.__module__ not in sys.stdlib_module_names:
            waiting.extend(each for each in vars(value).values() if not isinstance(each, type))
        elif isinstance(value, staticmethod | classmethod | MethodType):
            waiting.append(value.__func__)
        elif isinstance(value, property):
            waiting.append(value.fget)
        elif isinstance(value, FunctionType):
            if hasattr(value, "__wrapped__"):
                waiting.append(value.__wrapped__)
            if _key(own_code(value)) in wanted and not is_library(value.__code__.co_filename):
                found[value] = None
    return list(found)


def _key(code: CodeType) -> tuple[str, str]:
    return code.co_filename, code.co_qualname


def _around(name: str) -> list[str]:
    """Return the full names of a function and of those around it.

    >>> _around("outer.<locals>.inner")
    ['outer', 'outer.<locals>.inner']
    """
    parts = name.split(".<locals>.")
    return [".<locals>.".join(parts[: k + 1]) for k in range(len(parts))]


@lru_cache(maxsize=FILES)
def with_steps(code: CodeType) -> CodeType | None:
    """Return the code of a function with its loops as calls of `STEPPED_BY`; None where it has to stay as it is."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    place = code.co_name, code.co_firstlineno
    compiled = _compiled(tree, code.co_filename)
    found = [] if compiled is None else _codes_at(compiled, place)
    nodes = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and _place(each) == place]
    if len(found) != 1 or len(nodes) != 1 or not _same(found[0], code):
        return None
    rewriter = _Rewriter(nodes[0])
    rewriter.generic_visit(nodes[0])
    compiled = _compiled(ast.fix_missing_locations(tree), code.co_filename) if rewriter.changed else None
    if compiled is None:
        return None
    (made,) = _codes_at(compiled, place)
    stepped, unbound = STEPPED_BY
    return _filled(made, {STEPPED: stepped, LEFT: unbound}) if made.co_freevars == code.co_freevars else None


def _codes_at(code: CodeType, place: tuple[str, int]) -> list[CodeType]:
    return [each for each in codes_of(code) if (each.co_name, each.co_firstlineno) == place]


def _place(node: ast.FunctionDef) -> tuple[str, int]:
    return node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _compiled(tree: ast.Module, file: str) -> CodeType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of a constant that is called
            return compile(tree, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two pieces of code do the same, whatever they are called."""
    alike = one.co_code == other.co_code and one.co_names == other.co_names and one.co_freevars == other.co_freevars
    if not alike or one.co_varnames != other.co_varnames or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), repr(a)) == (type(b), repr(b))
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _filled(code: CodeType, values: dict[str, Any]) -> CodeType:
    """Return code with values in place of constants that stand for them."""
    consts = tuple(
        _filled(part, values) if isinstance(part, CodeType) else values.get(part, part) if type(part) is str else part
        for part in code.co_consts
    )
    name = "a loop" if code.co_name.startswith("__step_") else code.co_name  # as messages have it
    return code.replace(co_consts=consts, co_name=name)


class _Rewriter(ast.NodeTransformer):
    """Makes calls of loops, inner ones first."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        self.changed, self._count = False, 0
        self._scopes: list[ast.AST] = [definition]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._scopes.append(node)
        self.generic_visit(node)
        self._scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> Any:
        names = _assigned(node)
        can = names is not None and not _captured(self._scopes[-1], names)
        returns = any(isinstance(part, ast.Return) for part in _inside(node.body))
        self.generic_visit(node)
        if not can:
            return node
        assert names is not None
        self.changed = True
        self._count += 1
        step = _step(node, f"__step_{self._count}", names)
        own = [f"__{kind}_{self._count}" for kind in ("broke", "back", "value")]
        iterable = node.iter if isinstance(node, ast.For) else ast.Constant(LEFT)
        changes = [ast.Constant(_stores(self._scopes[0])), _texts(_added_to(self._scopes[0]))]
        call = ast.Call(ast.Constant(STEPPED), [_name(step.name), iterable, _locals(), _texts(names), *changes], [])
        made: list[ast.stmt] = [step, ast.Assign([ast.Tuple([_stored(n) for n in (*own, *names)], ast.Store())], call)]
        for name in names:
            is_left = ast.Compare(_name(name), [ast.Is()], [ast.Constant(LEFT)])
            made.append(ast.If(is_left, [ast.Delete([ast.Name(name, ast.Del())])], []))
        if returns:
            made.append(ast.If(_name(own[1]), [ast.Return(_name(own[2]))], []))
        if node.orelse:
            made.append(ast.If(ast.UnaryOp(ast.Not(), _name(own[0])), node.orelse, []))
        return [ast.copy_location(statement, node) for statement in made]


def _step(node: ast.For | ast.While, name: str, names: list[str]) -> ast.FunctionDef:
    """Return the step of a loop: it returns whether it goes on, was left or returned from, the value, and its names."""
    body: list[ast.stmt] = []
    if isinstance(node, ast.For):
        body.append(ast.Assign([node.target], _name("__item")))
    else:
        body.append(ast.If(ast.UnaryOp(ast.Not(), node.test), [_told(goes_on=False)], []))
    body += [_Leaves().visit(statement) for statement in node.body]
    body.append(_told(goes_on=True))
    arguments = ast.arguments([], [ast.arg(each) for each in ("__item", *names)], None, [], [], None, [])
    step = ast.FunctionDef(name, arguments, body, [])
    if hasattr(step, "type_params"):
        step.type_params = []
    return ast.copy_location(step, node)


class _Leaves(ast.NodeTransformer):
    """Makes a return of what leaves a step."""

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return ast.copy_location(_told(goes_on=False, broke=True), node)

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return ast.copy_location(_told(goes_on=True), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(_told(goes_on=False, broke=True, value=node.value or ast.Constant(None)), node)

    def visit_For(self, node: ast.For) -> ast.AST:  # one that has stayed: its own break and continue
        return _Returns().generic_visit(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return _Returns().generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


class _Returns(_Leaves):
    """The same inside of a loop that has stayed."""

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return node

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return node


def _told(*, goes_on: bool, broke: bool = False, value: ast.expr | None = None) -> ast.Return:
    parts = [ast.Constant(goes_on), ast.Constant(broke), ast.Constant(value is not None), value or ast.Constant(LEFT)]
    return ast.Return(ast.Tuple([*parts, _locals()], ast.Load()))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _stored(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _locals() -> ast.Call:
    return ast.Call(_name("locals"), [], [])


def _texts(names: list[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _inside(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield what stands in statements, but not what stands in functions and classes inside."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _assigned(node: ast.For | ast.While) -> list[str] | None:
    """Return the names that a loop assigns; None where it does what a function of its own would do otherwise."""
    whole = [*node.body, node.test] if isinstance(node, ast.While) else [*node.body, node.target]
    names = dict[str, None]()
    for part in _inside(whole):
        if isinstance(part, _REFUSED) or (isinstance(part, ast.ExceptHandler) and part.name):
            return None
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names[part.id] = None
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[part.name] = None
        elif isinstance(part, ast.Name) and part.id in ("locals", "vars", "eval", "exec", "super"):
            return None
    return None if any(name.startswith("__") for name in names) else list(names)  # a class may give those other names


def _captured(scope: ast.AST, names: list[str]) -> bool:
    """Whether a function inside of a function, or what else runs later, reads one of its names: as they change."""
    at_once = {id(call.args[0]) for call in ast.walk(scope) if isinstance(call, ast.Call) and len(call.args) == 1}
    for part in ast.walk(scope):
        later = isinstance(part, ast.GeneratorExp) and id(part) not in at_once
        inside = part is not scope and isinstance(part, _SCOPES)
        if (inside or later) and _read_in(part).intersection(names):
            return True
    return False


def _read_in(part: ast.AST) -> set[str]:
    """Return the names that a function inside has from around it, and some more: those that it assigns too."""
    names = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
    if isinstance(part, ast.Lambda | ast.FunctionDef):
        every = part.args
        names -= {each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)}
        outside = [*every.defaults, *filter(None, every.kw_defaults)]
        names |= {each.id for default in outside for each in ast.walk(default) if isinstance(each, ast.Name)}
    return names


def _stores(scope: ast.AST) -> bool:
    """Whether a function may change an array in place."""
    for part in ast.walk(scope):
        if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Store):
            return True
        if isinstance(part, ast.keyword) and part.arg == "out":
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _IN_PLACE:
            return True
    return False


def _added_to(scope: ast.AST) -> list[str]:
    """Return the names that are changed by `+=` and its kin, in place if they are arrays."""
    found = (part.target for part in ast.walk(scope) if isinstance(part, ast.AugAssign))
    return sorted({target.id for target in found if isinstance(target, ast.Name)})


class StepsOfLoops:
    """A block in which functions have the code whose loops are steps; several threads may be in such blocks."""

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        self._functions = list(functions)

    def __enter__(self) -> None:
        with _lock:
            for f in self._functions:
                original, calls = _swapped.get(f, (f.__code__, 0))
                _swapped[f] = original, calls + 1
                f.__code__ = with_steps(original) or original

    def __exit__(self, *_: object) -> None:
        with _lock:
            for f in self._functions:
                original, calls = _swapped.pop(f)
                if calls > 1:
                    _swapped[f] = original, calls - 1
                else:
                    f.__code__ = original


_lock = Lock()
_swapped: dict[FunctionType, tuple[CodeType, int]] = {}  # an entry lives as long as blocks that need it


def own_code(f: FunctionType) -> CodeType:
    """Return the code of a function as its user wrote it."""
    with _lock:
        return _swapped[f][0] if f in _swapped else f.__code__


def has_steps(f: FunctionType) -> bool:
    """Whether the code of a function has another form."""
    return with_steps(own_code(f)) is not None
