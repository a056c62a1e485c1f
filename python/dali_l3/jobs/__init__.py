"""Runs over many files, as plain functions that the command line calls.

- `walking`, `planning`: which file becomes which, decided before anything is written
- `outcomes`: one file to process, and what became of it
- `workers`, `serving`, `running`: tasks in worker processes, from the outside and the inside
- `interrupting`: Ctrl-C and SIGTERM
- `display`: how a run is shown
"""
