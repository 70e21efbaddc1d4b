"""Scalars: holes stand for columns, doubled braces for braces, and substitution keeps meaning."""

import pytest

from headrace.model.scalars import Scalar, columns_of, escape_braces


def test_a_scalar_is_rendered_with_any_names_for_its_columns() -> None:
    scalar = Scalar("{0} + {1} * {0}", ("a", "b"))
    assert scalar.render(lambda name: f"`{name}`") == "`a` + `b` * `a`"
    assert scalar.name is None
    assert Scalar.column("a") == Scalar("{0}", ("a",))
    assert Scalar.column("a").name == "a"


@pytest.mark.parametrize("text", ["", "{}", "{0}", "{{", "}}{", "'{0}' || '{{1}}'"])
def test_braces_that_are_meant_survive_everything(text: str) -> None:
    scalar = Scalar(f"concat('{escape_braces(text)}', {{0}})", ("a",))
    assert scalar.render(str) == f"concat('{text}', a)"
    inner = scalar.substitute({"a": scalar})
    assert inner.render(str) == f"concat('{text}', (concat('{text}', a)))"
    assert scalar.substitute({"a": Scalar.column("b")}).render(str) == f"concat('{text}', b)"


def test_what_is_substituted_keeps_to_itself() -> None:
    product = Scalar("{0} * {1}", ("a", "b"))
    total = Scalar("{0} + {1}", ("b", "c"))
    assert product.substitute({"a": total}) == Scalar("({0} + {1}) * {0}", ("b", "c"))
    # The name of a column alone needs no parentheses, around it or in its place.
    assert Scalar.column("a").substitute({"a": total}) == total
    assert product.substitute({"a": Scalar.column("b")}) == Scalar("{0} * {0}", ("b",))
    assert product.substitute({}) == product


def test_columns_are_the_union_of_references() -> None:
    assert columns_of([Scalar("1"), Scalar("{0} > {1}", ("a", "b")), Scalar.column("b")]) == {
        "a", "b",
    }  # fmt: skip


def test_an_edge_of_a_window_is_the_column_that_it_is() -> None:
    window = Scalar("named_struct('start', {0}, 'end', {1})", ("_window_start", "_window_end"))
    path = Scalar("hour({0}.start) + {1}.end + {0}.`End`", ("w", "other"))
    found = path.substitute({"w": window})
    assert found.refs == ("_window_start", "other", "_window_end")
    assert found.text == "hour({0}) + {1}.end + (named_struct('start', {0}, 'end', {2})).`End`"
    assert Scalar("{0}.END", ("w",)).substitute({"w": window}) == Scalar.column("_window_end")
    assert Scalar("{0}.start_time", ("w",)).substitute({"w": Scalar.column("x")}).text == (
        "{0}.start_time"
    )
