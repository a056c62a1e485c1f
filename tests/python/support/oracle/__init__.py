"""An independent decoder and writer of L3 files, made from docs/format.md alone, to test the codec against."""
