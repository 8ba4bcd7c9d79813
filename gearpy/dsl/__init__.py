"""The stream language: `stream` is what users write, `plan` what they wrote, `lower` what runs.

Start with `stream.StreamApp`. May be imported by entry points only; uses the task layer below.
"""
