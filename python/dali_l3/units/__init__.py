"""Conversion in units of work: to tar shards, from tar shards, and in parts that run anywhere, at any time.

Export is a conversion, too: from L3 to PNG.

A conversion has three kinds of files. The *manifest* says what is to be done. It lists the samples of the source in the
order in which they are written, and cuts the list into *units*: what becomes one output shard, or some hundred files of
a folder. A *record* for each unit says what became of its samples. It is written after all output of its unit: a unit
is done when its record is there. So these stand beside the output, which is the third kind:

    train-l3/                 shard-000000.tar, shard-000000.idx, …; or a tree of files
    train-l3.conversion/      manifest.json, samples-DIGEST.jsonl
    train-l3.conversion/records/    000000.jsonl, …
    train-l3.conversion/amended/    000000.jsonl, … where files of samples that failed were replaced

They are not in the output folder, in which readers would take them for data.

The manifest is written once; it follows from the source and the options alone. Only the files of samples that failed
may change: what is amended then takes the place of the manifest's samples of a unit. The output of a unit
follows from the manifest and the source alone, byte for byte. Every file appears whole or not at all. So whoever knows
where the manifest is can do any unit: `running.run_unit(manifest, unit)` needs this package and the storage, and nobody
to talk to. A unit that was under way when a run was killed is done again. Two runs that do the same unit replace files
by the same files.

Where a unit runs is up to who calls `run_unit`: `running.run_locally` and `on_ray.run_on_ray` do. Where files are is
up to `storage`: units reach their files through it alone.

- `storage`: listing, reading, writing; folders of this machine
- `buckets`: the same in s3:// and gs://
- `objects`: what the core needs of buckets
- `samples`: the samples of a source, and the names that they get
- `manifest`, `planning`: what is to be done; how it is made
- `sample_conversion`: what is done to one sample, in a worker process
- `shards`, `sequence`: writes tar shards, of samples in order
- `running`: does one unit, or all that are left, on this machine
- `on_ray`: has them done by the machines of a Ray cluster
- `records`: what became of units; the state of a conversion; its report
- `verifying`, `indexing`: the same for files in buckets and in shards as `conversion` has for files of folders
"""
