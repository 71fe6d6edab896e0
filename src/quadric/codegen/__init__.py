"""Write a fitted model as a program without dependencies: C, SQL, JavaScript or Python.

`generate` returns the text of a program that computes what the model predicts, with its
preprocessing. `_translation` translates the operations of the table of supported steps, which
`onnx` translates as well, into the expressions and statements of `_expressions`. Each language
writes them with its own `Spelling`: `_python`, `_javascript`, `_c`, `_sql`. `_fixed_point` replaces
them by operations on integers.

`_proof` bounds the difference between the scores of the generated C code and those of the model.
`to_sympy` and `to_latex` (`_formulas`) write single layers as formulas.
"""

from quadric.codegen._formulas import to_latex, to_sympy
from quadric.codegen._generate import generate

__all__ = ["generate", "to_latex", "to_sympy"]
