"""The tests of other projects, run with our classes in place of theirs.

The tests are imported from the installed package, and none of their code is copied. `differences`
lists those that are expected to fail, each with a reason. Any other failure is an error, and so is
a listed test that passes. Tests that do not use a replaced class are left out.
"""
