"""Small files and the schema of a table."""

from quadric.apps.shell.tables import ColumnOptions, open_table
from quadric.apps.shell.tables._schema_inference import infer_schema, new_profiles, profile_batch


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def schema_of(path, target, batch=10**6, **options):
    return schema_of_source(open_table(path), target, batch, **options)


def schema_of_source(source, target, batch=10**6, **options):
    options = ColumnOptions(target, **options)
    profiles = new_profiles(options, source.columns)
    for frame in source.batches(batch):
        profile_batch(profiles, frame)
    return infer_schema(profiles, options, source.unnamed)
