"""First bytes of files that are not read, and what such a file is."""

PACKINGS = {
    rb"BZh[1-9]1AY&SY": "bzip2",
    rb"\xfd7zXZ\0": "xz",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"7z\xbc\xaf\x27\x1c": "7z",
}
"""First bytes of packed files that are not unpacked, as regular expressions; and the name of the packing."""
CONTENTS = {
    rb"\xff\xfe|\xfe\xff": "this is text in UTF-16; save it as UTF-8",
    rb"version https://git-lfs": "this is Git LFS's pointer to a file that was not fetched; git lfs pull fetches it",
    rb"(?i)\s*<(!doctype )?html": "this is a web page; was the download refused?",
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "this is a file of Office, such as a workbook of Excel; export it as CSV",
    rb"ARROW1\0\0|\xff\xff\xff\xff.\0\0\0\x10": "this is a file of Arrow (Feather); write the table as Parquet",
    rb"ORC[^\0]{0,12}[\0-\x08\x0e-\x1f]": "this is an ORC file; write the table as Parquet",
    rb"Obj\x01": "this is an Avro file; write the table as Parquet",
    rb"\x89HDF\r\n": "this is an HDF5 file; write the table as Parquet",
    rb"SQLite format 3\0": "this is a database of SQLite; write the table as CSV or Parquet",
    rb"%PDF-": "this is a PDF",
}
"""First bytes of files that are not traces, and the error about them."""
DOCUMENTS = {
    "xl/workbook.xml": "a workbook of Excel",
    "xl/workbook.bin": "a workbook of Excel",
    "content.xml": "an OpenDocument",
    "word/document.xml": "a document of Word",
}
"""Members of zip archives that are documents."""
