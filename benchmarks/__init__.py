"""Benchmarks, run from a checkout: python -m benchmarks"""
