"""The commands of `quadric`, one file each.

`_console` prints output and reports errors, and `_inputs` opens model files and tables.
"""
