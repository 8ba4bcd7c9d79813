"""Options that several functions share, as people and checkers see them."""

from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import gearpy as gp


@pytest.mark.parametrize(
    ("function", "name", "default"),
    [
        (gp.csv, "delimiter", ","),
        (gp.csv, "time_unit", "ms"),
        (gp.jsonl, "settle", "1s"),
        (gp.arrow, "follow", False),
        (gp.jsonl_folder, "prefix", "part"),
        (gp.parquet_folder, "file_bytes", None),
    ],
)
def test_each_function_shows_all_of_its_options(function: Any, name: str, default: object) -> None:
    assert signature(function).parameters[name].default == default
    assert "options" not in signature(function).parameters
    assert f"    {name}: " in function.__doc__
    assert "Example:" in function.__doc__


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        (gp.csv, "delimitr"),
        (gp.jsonl, "folow"),
        (gp.parquet, "rows"),
        (gp.arrow, "shema"),
        (gp.csv_folder, "columns"),
        (gp.jsonl_folder, "prefx"),
        (gp.arrow_folder, "schem"),
        (gp.parquet_folder, "codec"),
    ],
)
def test_an_option_that_is_none_is_refused_under_the_name_that_was_called(
    function: Any, wrong: str, tmp_path: Path
) -> None:
    text = rf"^{function.__name__}\(\) got an unexpected keyword argument '{wrong}'"

    with pytest.raises(TypeError, match=text):
        function(tmp_path, **{wrong: 1})
