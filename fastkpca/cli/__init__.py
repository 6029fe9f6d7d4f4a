"""The command line, ``fastkpca fit | plan | project | monitor ...``: wording; the library computes.

==============  ==========================================================================================
``arguments``   the options of every command, their help and their examples
``commands``    what each command does, and ``main``
``fit``         ``fastkpca fit`` and ``fastkpca plan``
``monitor``     ``fastkpca monitor``; ``monitored`` writes what it found
``demo``        ``fastkpca demo``
``inputs``      the file of rows that a command reads
``outputs``     the files that a command writes, checked before any work
``console``     errors and warnings in one line, progress, closed streams
``tables``      the readers of files of rows
==============  ==========================================================================================
"""

from .commands import main

__all__ = ["main"]
