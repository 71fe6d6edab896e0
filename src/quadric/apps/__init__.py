"""Programs built on the library: the shell, the reproduction of the paper and the playground.

They use only public names of the library, as any user's program would. Nothing in the library
imports them.
"""
