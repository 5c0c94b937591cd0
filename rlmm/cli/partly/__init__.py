"""What commands tell where a part of the metadata is all that can be read."""
