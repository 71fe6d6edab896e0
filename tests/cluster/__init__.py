"""Tests of `quadric.cluster`."""
