"""quadric and its peers side by side: `python -m benchmarks compare`.

`_sections` lists the sections. Each section runs in a process of its own, checks that the
contenders compute the same numbers, times them in turns and returns plain data. `_command` runs the
sections and prints their tables, `_check` compares the ratios with the committed ones, and `_page`
writes the page of the site.
"""
