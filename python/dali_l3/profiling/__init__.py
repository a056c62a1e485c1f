"""Profiles datasets: finds the formats that load fastest on this machine. `dali-l3 profile` calls these functions.

- `sampling`: images that stand for the dataset
- `encoding`: the sample in every candidate format, on the disk to measure; its own files for the candidate `source`
- `measuring`: throughput of real DALI pipelines; `cpu_load`: how busy the CPUs are
- `cost_model`: the model: what images cost in each format, and what a mix of formats reaches
- `batch_model`: what batches add to that
- `mixing_program`, `ratio_search`: the best mix, by linear programming over the costs, and by the paper's search
- `choosing`: the mix that is worth its space
- `diagnosis`: what limits the dataset as it is
- `quality`: what lossy formats lose
- `profiler`: all of that, one after the other
- `dataset`: the dataset at the recommended ratio
- `work_folder`: the folder for the sample, which does not stay behind
- `report`: what was found, on the terminal, as JSON and as HTML

Needs DALI and the packages of the extra `profile`.
"""

DEFAULT_FORMATS = ("source", "bmp", "l3-fast", "l3-raw")
"""The candidates, unless others are named."""
