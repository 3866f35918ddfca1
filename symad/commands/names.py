"""Names, summaries, descriptions and examples of all commands, for `symad --help` without further imports."""

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
DESCRIPTIONS = {  # where the summary is not enough
    "hessian": "Trace FUNCTION at the example point its file gives (argument defaults or example_args), take its "
    "Hessian in the first argument, compile it, and check every entry against 50 digits.",
    "expand": "Expand f(x + eps_1 v + eps_2 w + ...), every eps squaring to 0, one level at a time.",
    "check": "Compare the lines of ANSWER, one step each, with the expansion along --directions, or without "
    "directions with the derivative of some --order. Exit status 1 when a line is wrong.",
    "grade": "Check every answer in a folder of text files, or in a table with columns name and answer, against "
    "the question in a TOML file (formula, directions, order, points...). Answers that cannot be read are "
    "reported with the place. Exit status 0 when all were read and decided, 1 otherwise.",
    "exercise": "Print a random exercise of a topic, the same for the same seed; without a topic, all topics. "
    "With --answer, exit status 1 when a line of it is wrong.",
    "worksheet": "Make a sheet of different exercises, of one topic or of several in turn, and its solutions. "
    "Pages print on A4 and Letter.",
    "compare": "Compare symbolic differentiation, every mode of automatic differentiation, Taylor coefficients, "
    "differences and other libraries where they are installed, at a point.",
    "verify": "Compile the target, or its derivative, and compare its results with exact ones, at its point or "
    "at random and adversarial points of a box.",
    "workbench": "Open a page on this machine (the loopback address, with a token in it) on which a formula is "
    "typed, and everything about its derivative is seen at once, linked. Nothing is fetched from anywhere else.",
    "export": "Trace FUNCTION at the example point its file gives (argument defaults or example_args), compile "
    "it or its derivative in the first argument, and write object file, shared library, C header, C99 source and "
    "a test program with the exact result at the example point.",
    "cache": "Show the entries of the disk cache of machine code, the most recently used first: the folder that "
    "SYMAD_CACHE names, or else symad in XDG_CACHE_HOME or ~/.cache.",
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "hessian": ("symad hessian model.py:energy", "symad hessian model.py:energy --emit llvm --output energy.ll"),
    "steps": ('symad steps "x^2 sin(x)"', 'symad steps "x^2 + y^2 = 25" --at x=3 y=4'),
    "expand": ('symad expand "sin(x)*y" --directions v w', 'symad expand "x^3" --at x=2 --html page.html'),
    "check": ('symad check "x*sin(x)" --answer mine.txt', 'symad check "x sin(x)" --answer - < mine.txt'),
    "grade": (
        "symad grade answers --question q.toml --out marks.csv --pages pages",
        "symad grade answers.csv --question q.toml --answer-column response",
    ),
    "exercise": ("symad exercise", 'symad exercise "product rule" --level 2 --seed 7 --hints 1'),
    "worksheet": ('symad worksheet "chain rule" "quotient rule" --html sheet.html --solutions solutions.html',),
    "explain": ('symad explain "x*sin(y)" --at x=2 y=1', "symad explain model.py:f --output page.html"),
    "draw": ('symad draw "x*sin(x)" --output graph.svg', "symad draw model.py:f --transform grad --loops"),
    "compare": ('symad compare "exp(x)" --at x=0.7', "symad compare model.py:f --order 2 --output table.csv"),
    "verify": ('symad verify "exp(x)" --at x=0.7', "symad verify model.py:f --transform hessian --box -1 1"),
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
MODULES = {  # where a command is, if not in a module of its name
    "worksheet": "exercise",
    **dict.fromkeys(("steps", "expand", "check", "explain", "draw", "compare", "verify"), "pages"),
}
FILE = r".+\.py:\w+"  # a target that is a function of a file
STATUS = """exit status:
  0    done, and right
  1    an answer or a route is wrong, or nothing could be verified
  2    the command line, a file or an argument cannot be used
  3    the function, or what was to be done with it, failed
  130  interrupted"""
