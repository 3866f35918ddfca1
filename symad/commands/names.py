"""Names, summaries and examples of all commands, for `symad --help` without further imports."""

from __future__ import annotations

HELP = {
    "hessian": "trace, differentiate, compile and check the Hessian of a scalar function",
    "steps": "derive a formula rule by rule, as a textbook writes it",
    "expand": "expand f(x + eps_1 v + eps_2 w + ...), one level at a time",
    "check": "find the first wrong line of an expansion or a derivative that somebody wrote",
    "grade": "mark the answers of a whole class to one question, with a page for each pupil",
    "exercise": "print a random exercise of a topic, with hints, verdicts and its solution",
    "worksheet": "make a sheet of random exercises and their solutions, to print",
    "explain": "show the stages of a derivative: program, linearized, transposed, differentiated",
    "draw": "draw the graph of a function or of its derivative",
    "compare": "compare every route to a derivative: values, errors, operations, times",
    "verify": "compare a compiled kernel with exact numbers, at a point or all over a box",
    "confusion": "run nested derivatives by wrong designs beside the right one, line by line",
    "workbench": "open a page in the browser on which all of this is touched, linked",
    "export": "write a function or its derivative as a library for C and other languages",
    "cache": "show or clear the disk cache of machine code",
    "completion": "print what makes a shell complete commands and options",
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "hessian": (
        "symad hessian model.py:energy",
        "symad hessian model.py:energy --emit llvm --output energy.ll",
    ),
    "steps": ('symad steps "x^2 sin(x)"', 'symad steps "x^2 + y^2 = 25" --at x=3 y=4'),
    "expand": ('symad expand "sin(x)*y" --directions v w', 'symad expand "x^3" --at x=2 --html page.html'),
    "check": (
        'symad check "x*sin(x)" --answer mine.txt',
        'symad check "x sin(x)" --answer - < mine.txt',
    ),
    "grade": (
        "symad grade answers --question q.toml --out marks.csv --pages pages",
        "symad grade answers.csv --question q.toml --answer-column response",
    ),
    "exercise": ("symad exercise", 'symad exercise "product rule" --level 2 --seed 7 --hints 1'),
    "worksheet": ('symad worksheet "chain rule" "quotient rule" --html sheet.html --solutions solutions.html',),
    "explain": ('symad explain "x*sin(y)" --at x=2 y=1', "symad explain model.py:f --output page.html"),
    "draw": ('symad draw "x*sin(x)" --output graph.svg', "symad draw model.py:f --transform grad --loops"),
    "compare": ('symad compare "exp(x)" --at x=0.7', "symad compare model.py:f --order 2 --output table.csv"),
    "verify": (
        'symad verify "exp(x)" --at x=0.7',
        "symad verify model.py:f --transform hessian --box -1 1",
    ),
    "confusion": ("symad confusion amazing-bug", 'symad confusion "x*exp(y)" --html page.html'),
    "workbench": ('symad workbench "exp(x sin(x))"', "symad workbench model.py:f", "symad workbench --lesson 3"),
    "export": ("symad export model.py:energy --directory out --of grad",),
    "cache": ("symad cache", "symad cache --clear"),
    "completion": (
        "symad completion bash > ~/.local/share/bash-completion/completions/symad",
        "symad completion zsh > ~/.zfunc/_symad",
        "symad completion fish > ~/.config/fish/completions/symad.fish",
    ),
}
GROUPS = (  # the commands that a function of a module declares
    (("hessian",), "symad.commands.hessian", "add_command"),
    (("steps",), "symad.commands.pages", "add_steps"),
    (("expand", "check"), "symad.commands.pages", "add_expand_and_check"),
    (("grade",), "symad.commands.grade", "add_command"),
    (("exercise", "worksheet"), "symad.commands.exercise", "add_commands"),
    (("explain", "draw"), "symad.commands.pages", "add_explain_and_draw"),
    (("compare", "verify"), "symad.commands.pages", "add_compare_and_verify"),
    (("confusion",), "symad.commands.confusion", "add_command"),
    (("workbench",), "symad.commands.workbench", "add_command"),
    (("export",), "symad.commands.export", "add_command"),
    (("cache",), "symad.commands.cache", "add_command"),
    (("completion",), "symad.commands.completion", "add_command"),
)
STATUS = """exit status:
  0    done, and right
  1    an answer, a route or a number is wrong
  2    the command line, a file or an argument cannot be used
  3    the function, or what was to be done with it, failed
  130  interrupted"""
