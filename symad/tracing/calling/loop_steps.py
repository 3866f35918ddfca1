"""Rewrite loops and `if` statements of a source as functions, so that their paths can be merged.

A loop with a condition inside has a path for each way through all of its steps, and a row of `if` statements one for
each way through all of them. If a step, or an `if`, is a function of the variables that it assigns, its paths are
merged like those of any call (see `merged_calls`). So every loop becomes a call of `STEPPED` with such a function, and
every `if` one of `BRANCHED`. A statement stays unchanged if a function in its place would compute something else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

STEPPED = "symad: a loop whose steps are calls"  # the function that runs the loop replaces this constant
PAIRED = "symad: the items of a loop over zip or enumerate"
BRANCHED = "symad: an if statement whose paths are merged"
EITHER = "symad: a conditional expression whose paths are merged"
LEFT = "symad: a variable that is not bound"


class _Unbound:
    """The value of a variable that is not bound, and the items of a `while`."""


UNBOUND = _Unbound()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_REFUSED = (
    ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal, ast.Delete, ast.Import,
    ast.ImportFrom, ast.Match,
)  # fmt: skip
_DECIDING = (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.Compare, ast.Call, ast.Assert)  # which may ask a condition
_IN_PLACE = frozenset({"sort", "fill", "put", "partition", "itemset", "resize", "setfield", "at"})


def calls_of_steps(tree: ast.Module, name: str, line: int) -> bool:
    """Turn the loops of the function with that name and line into calls of their steps; whether there were any."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _place(node) == (name, line)]
    if len(nodes) != 1:
        return False
    rewriter = _Rewriter(nodes[0])
    rewriter.visit_FunctionDef(nodes[0])
    expressions = _Expressions()
    expressions.generic_visit(nodes[0])
    return rewriter.changed or expressions.changed


def _place(node: ast.FunctionDef) -> tuple[str, int]:
    return node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _unchanged(_: ast.NodeTransformer, node: ast.AST) -> ast.AST:
    return node


class _Rewriter(ast.NodeTransformer):
    """Turns loops and `if` statements into calls, inner ones first."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        self.changed, self._count = False, 0
        stores, added_to = ast.Constant(_stores(definition)), _strings(_added_to(definition))
        self._changes: list[ast.expr] = [stores, added_to]
        self._captured = list[set[str]]()  # names that functions inside read, for each function around
        self._ifs = [FEW_IFS + 1]  # in each step around

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._captured.append(_captured(node))
        self.generic_visit(node)
        self._captured.pop()
        return node

    visit_ClassDef = visit_Lambda = visit_AsyncFunctionDef = _unchanged  # noqa: N815 (names of ast)

    def visit_If(self, node: ast.If) -> Any:
        leaves = any(isinstance(part, _LEAVING) for part in _inside([node]))
        names = None if leaves or self._ifs[-1] <= FEW_IFS else self._bound(node, [node])
        if names is None:
            self.generic_visit(node)
            return node
        self._visit_inside(node)
        name, test = self._next("if"), node.test
        if _is_simple(test):
            node.test = ast.Name("__test", ast.Load())
        else:
            test = ast.Constant(True)
        step = _function(name, ["__test", *names], [node, ast.Return(_locals())], node)
        call = ast.Call(ast.Constant(BRANCHED), [_name(name), test, _locals(), _strings(names), *self._changes], [])
        bind: ast.stmt = ast.Assign([ast.Tuple([_stored(n) for n in names], ast.Store())], call)
        return [ast.copy_location(statement, node) for statement in (step, bind, *_unbound(names))]

    def _loop(self, node: ast.For | ast.While) -> Any:
        whole = [*node.body, node.test] if isinstance(node, ast.While) else [*node.body, node.target]
        names = self._bound(node, whole) if any(isinstance(part, _DECIDING) for part in _inside([node])) else None
        returns = any(isinstance(part, ast.Return) for part in _inside(node.body))
        if names is None:
            self.generic_visit(node)
            return node
        self._visit_inside(node)
        step = _step(node, self._next("step"), names)
        own = [f"__{kind}_{self._count}" for kind in ("broke", "back", "value")]
        iterable = _paired(node.iter) if isinstance(node, ast.For) else ast.Constant(LEFT)
        arguments = [_name(step.name), iterable, _locals(), _strings(names), *self._changes]
        call = ast.Call(ast.Constant(STEPPED), arguments, [])
        bind = ast.Assign([ast.Tuple([_stored(n) for n in (*own, *names)], ast.Store())], call)
        statements: list[ast.stmt] = [step, bind, *_unbound(names)]
        if returns:
            statements.append(ast.If(_name(own[1]), [ast.Return(_name(own[2]))], []))
        if node.orelse:
            statements.append(ast.If(ast.UnaryOp(ast.Not(), _name(own[0])), node.orelse, []))
        return [ast.copy_location(statement, node) for statement in statements]

    visit_For = visit_While = _loop  # noqa: N815 (names of ast)

    def _bound(self, node: ast.stmt, parts: list[Any]) -> list[str] | None:
        """Return the names that a statement binds, None if it cannot be a function."""
        names = _assigned(parts)
        return None if names is None or self._captured[-1].intersection(names) else names

    def _visit_inside(self, node: ast.stmt) -> None:
        self.changed = True
        self._ifs.append(sum(isinstance(part, ast.If) for part in _inside([node])))
        self.generic_visit(node)
        self._ifs.pop()

    def _next(self, kind: str) -> str:
        self._count += 1
        return f"__{kind}_{self._count}"


FEW_IFS = 2  # in a step: its paths, four at most, are followed one by one
_LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Raise)
_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Slice)


def _is_simple(test: ast.expr) -> bool:
    """Whether a condition asks no other one: a comparison or a value, without calls."""
    parts = [test]
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        parts = [test.left, *test.comparators]
    inside = [part for operand in parts for part in ast.walk(operand) if isinstance(part, ast.expr)]
    return all(isinstance(part, _SIMPLE) and not isinstance(getattr(part, "op", None), ast.Not) for part in inside)


def _unbound(names: list[str]) -> list[ast.stmt]:
    return [
        ast.If(
            ast.Compare(_name(name), [ast.Is()], [ast.Constant(LEFT)]), [ast.Delete([ast.Name(name, ast.Del())])], []
        )
        for name in names
    ]


def _paired(items: ast.expr) -> ast.expr:
    """Return the items of a loop; those of zip and enumerate in a form that can be read in advance."""
    is_pair = isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.func.id in ("zip", "enumerate")
    if not is_pair:
        return items
    call = ast.Call(ast.Constant(PAIRED), [items.func, *items.args], items.keywords)  # type: ignore[attr-defined]
    return ast.copy_location(call, items)


def _step(node: ast.For | ast.While, name: str, names: list[str]) -> ast.FunctionDef:
    """Return the step of a loop. It returns whether it goes on, was left or returned from, the value, and its names."""
    body: list[ast.stmt] = []
    if isinstance(node, ast.For):
        body.append(ast.Assign([node.target], _name("__item")))
    else:
        body.append(ast.If(ast.UnaryOp(ast.Not(), node.test), [_step_result(goes_on=False)], []))
    body += [_LeavingStatements().visit(statement) for statement in node.body]
    body.append(_step_result(goes_on=True))
    return _function(name, ["__item", *names], body, node)


def _function(name: str, arguments: list[str], body: list[ast.stmt], place: ast.stmt) -> ast.FunctionDef:
    definition = ast.FunctionDef(
        name, ast.arguments([], [ast.arg(argument) for argument in arguments], None, [], [], None, []), body, []
    )
    if hasattr(definition, "type_params"):
        definition.type_params = []
    return ast.copy_location(definition, place)


class _Expressions(ast.NodeTransformer):
    """Turns conditional expressions into calls: `a if c else b` becomes `EITHER(lambda: a if c else b)`."""

    changed = False

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(part, _NOT_IN_LAMBDA) or _reads_caller(part) for part in ast.walk(node)):
            return node
        self.changed = True
        nothing = ast.arguments([], [], None, [], [], None, [])
        return ast.copy_location(ast.Call(ast.Constant(EITHER), [ast.Lambda(nothing, node)], []), node)

    visit_ClassDef = _unchanged  # noqa: N815 (names of ast)


_NOT_IN_LAMBDA = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)


def _reads_caller(part: ast.AST) -> bool:
    """Whether a name stands for a function that reads the variables of its caller."""
    return isinstance(part, ast.Name) and part.id in ("locals", "vars", "eval", "exec", "super")


class _LeavingStatements(ast.NodeTransformer):
    """Turns statements that leave a step into returns."""

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return ast.copy_location(_step_result(goes_on=False, broke=True), node)

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return ast.copy_location(_step_result(goes_on=True), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(_step_result(goes_on=False, broke=True, value=node.value or ast.Constant(None)), node)

    def _inner_loop(self, node: ast.AST) -> ast.AST:  # its break and continue are its own
        return _OnlyReturns().generic_visit(node)

    visit_For = visit_While = _inner_loop  # noqa: N815 (names of ast)
    visit_FunctionDef = visit_Lambda = visit_ClassDef = _unchanged  # noqa: N815 (names of ast)


class _OnlyReturns(_LeavingStatements):
    """The same inside a loop that stays a loop."""

    visit_Break = visit_Continue = _unchanged  # noqa: N815 (names of ast)


def _step_result(*, goes_on: bool, broke: bool = False, value: ast.expr | None = None) -> ast.Return:
    parts = [ast.Constant(goes_on), ast.Constant(broke), ast.Constant(value is not None), value or ast.Constant(LEFT)]
    return ast.Return(ast.Tuple([*parts, _locals()], ast.Load()))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _stored(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _locals() -> ast.Call:
    return ast.Call(_name("locals"), [], [])


def _strings(names: list[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _inside(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes in statements, but not those in functions and classes inside."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _assigned(parts: Iterable[ast.AST]) -> list[str] | None:
    """Return the names that statements bind; None if a function in their place would do something else."""
    names = dict[str, None]()
    for part in _inside(parts):
        if isinstance(part, _REFUSED) or (isinstance(part, ast.ExceptHandler) and part.name):
            return None
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names[part.id] = None
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[part.name] = None
        elif _reads_caller(part):
            return None
    return None if any(name.startswith("__") for name in names) else list(names)  # a class may give those other names


def _captured(scope: ast.AST) -> set[str]:
    """Return the names that inner functions, and other code that runs later, read while they change."""
    at_once = {id(call.args[0]) for call in ast.walk(scope) if isinstance(call, ast.Call) and len(call.args) == 1}
    names = set[str]()
    for part in ast.walk(scope):
        later = isinstance(part, ast.GeneratorExp) and id(part) not in at_once
        if later or (part is not scope and isinstance(part, _SCOPES)):
            names |= _read_in(part)
    return names


def _read_in(part: ast.AST) -> set[str]:
    """Return the names that an inner function has from outside, and some that it assigns."""
    names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    if isinstance(part, ast.Lambda | ast.FunctionDef):
        signature = part.args
        names -= {argument.arg for argument in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)}
        outside = [*signature.defaults, *filter(None, signature.kw_defaults)]
        names |= {node.id for default in outside for node in ast.walk(default) if isinstance(node, ast.Name)}
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
    """Return the names that `+=` and its kin change, in place if they are arrays."""
    targets = (part.target for part in ast.walk(scope) if isinstance(part, ast.AugAssign))
    return sorted({target.id for target in targets if isinstance(target, ast.Name)})
