"""Readers and writers of workload files: `tr` (Hawk and Eagle traces) and `parquet` (Emu's own form)."""
