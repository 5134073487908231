"""The write-time policy: what goes, what stays, and what a marker may tell."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.contexts import nothing_to_remove
from playhead.core.credentials import MARKER, RULES, marker
from playhead.core.model import JSON
from playhead.core.redact import HEADERS, Policy, Redactor, Removal

KEY = "sk-test-AAAAAAAAAAAAAAAAAAAAAAAA"
DEFAULT = Redactor()
CONTENT = Redactor(Policy("content", content=True))

TOKENS = {
    "sk": KEY,
    "github": "ghp_" + "a1B2" * 9,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "Sy-_0" * 7,
    "slack": "xoxb-1234567890-abcdef",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "pem": "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----",
}
MORE = ["sk-ant-api03-" + "x9" * 20, "gho_" + "9" * 36, "github_pat_" + "1a_" * 12,
        "ASIA" + "B" * 16]  # fmt: skip


# --- by default: headers, URLs, environments ----------------------------------------------------


@pytest.mark.parametrize("name", sorted(HEADERS))
def test_headers_in_every_spelling(name: str) -> None:
    mark = "<<redacted:header:9-16>>"
    spellings: list[tuple[JSON, JSON]] = [
        ({name.title(): "Bearer abcde"}, {name.title(): mark}),
        ({name: ["Bearer abcde"]}, {name: [mark]}),
        ([[name, "Bearer abcde"]], [[name, mark]]),
        ([{"name": name, "value": "Bearer abcde"}], [{"name": name, "value": mark}]),
        (["Host", "h", name, "Bearer abcde"], ["Host", "h", name, mark]),
        (f"Host: h\r\n{name}: Bearer abcde\r\nA: b", f"Host: h\r\n{name}: {mark}\r\nA: b"),
        ([f"{name}: Bearer abcde"], [f"{name}: {mark}"]),
    ]
    for key in ("headers", "request_headers", "Headers"):
        for before, after in spellings:
            out, removals = DEFAULT.value({key: before})
            assert out == {key: after}
            assert [removal.rule for removal in removals] == ["header"]


def test_headers_that_are_no_secret_stay() -> None:
    value = {"headers": {"Host": "h", "openai-organization": "org", "x-request-id": "1"}}
    assert DEFAULT.value(value) == (value, [])


def test_an_authorization_outside_of_headers() -> None:
    out, removals = DEFAULT.value({"h": {"authorization": "Basic dTpw"}, "authorization": "none"})
    assert out == {"h": {"authorization": "<<redacted:header:9-16>>"}, "authorization": "none"}
    assert removals == [Removal("/h/authorization", "header")]


def test_environments_in_every_spelling() -> None:
    before = {
        "env": {
            "PATH": "/bin",
            "API_KEY": "k",
            "Db_Password": "pw",
            "PIN_TOKEN": 1234,
            "KEY": None,
        },
        "environ": ["A=b", "GITHUB_TOKEN=abc"],
        "environment": [{"name": "X_SECRET", "value": "v"}, {"name": "HOME", "value": "/h"}],
        "Env": "A=1\nexport AWS_ACCESS_KEY_ID=abc\nB=2",
    }
    short = "<<redacted:env:1-8>>"
    assert DEFAULT.value(before)[0] == {
        "env": {"PATH": "/bin", "API_KEY": short, "Db_Password": short, "PIN_TOKEN": short,
                "KEY": None},
        "environ": ["A=b", f"GITHUB_TOKEN={short}"],
        "environment": [{"name": "X_SECRET", "value": short}, {"name": "HOME", "value": "/h"}],
        "Env": f"A=1\nexport AWS_ACCESS_KEY_ID={short}\nB=2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://u:pw@h.test/x", "https://<<redacted:userinfo:1-8>>@h.test/x"),
        ("postgres://u:p@ss@db/x", "postgres://<<redacted:userinfo:1-8>>@db/x"),
        ("https://h/?a=1&key=abc&b=2#f", "https://h/?a=1&key=<<redacted:query:1-8>>&b=2#f"),
        ("https://h/#access_token=abc", "https://h/#access_token=<<redacted:query:1-8>>"),
        ("https://h/?API_KEY=a;token=b", "https://h/?API_KEY=<<redacted:query:9-16>>"),
        ("get https://h/?code=x failed", "get https://h/?code=<<redacted:query:1-8>> failed"),
        ('{"u": "https://h/?sig=x"}', '{"u": "https://h/?sig=<<redacted:query:1-8>>"}'),
        (r"https:\/\/h\/?a=1\u0026key=x", r"https:\/\/h\/?a=1\u0026key=<<redacted:query:1-8>>"),
        ("https://h/?X-Amz-Signature=0", "https://h/?X-Amz-Signature=<<redacted:query:1-8>>"),
    ],
)
def test_urls_in_any_string(before: str, after: str) -> None:
    out, removals = DEFAULT.value(["x", before])
    assert out == ["x", after]
    assert {removal.pointer for removal in removals} == {"/1"}


@pytest.mark.parametrize(
    "text",
    ["https://h/?monkey=1", "ssh://git@h/x", "mail a@b.test?key=1", "key=1", "http://h/@x", KEY],
)
def test_what_is_no_url_secret_stays(text: str) -> None:
    assert DEFAULT.value(text) == (text, [])


def test_a_secret_in_a_key() -> None:
    out, removals = DEFAULT.value({"http://a:b@h": 1, "http://c:d@h": 2})
    name = "http://<<redacted:userinfo:1-8>>@h"
    assert out == {name: 1, name + "'": 2}
    assert [removal.rule for removal in removals] == ["userinfo", "userinfo"]


# --- content, opt-in ----------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "token"), TOKENS.items())
def test_each_kind_of_token_in_free_text(rule: str, token: str) -> None:
    text = f"see {token} there"
    assert CONTENT.text(text) == (f"see {marker(rule, len(token))} there", [rule])
    assert DEFAULT.text(text) == (text, [])


@pytest.mark.parametrize("token", [*TOKENS.values(), *MORE])
def test_tokens_in_every_wrapping(token: str) -> None:
    once = json.dumps({"k": token})
    for text in (
        json.dumps({"k": once}),
        json.dumps({"k": json.dumps({"out": f"a\n{token}\tb"})})[1:],
        base64.b64encode(f"u:{token}".encode()).decode(),
        base64.urlsafe_b64encode(f"\xff\xfe~{token}".encode()).decode().rstrip("="),
        "x=" + quote(f"API_KEY={token}", safe=""),
    ):
        out, rules = CONTENT.text(text)
        assert rules and token not in out and token[:12] not in out
        assert CONTENT.value(text)[0] != text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("NAME_KEY=abc def", "NAME_KEY=<<redacted:assignment:1-8>> def"),
        ('x "api_key": "a b", "n": 1', 'x "api_key": "<<redacted:assignment:1-8>>", "n": 1'),
        (r'"{\"api_key\": \"abc\"}', r'"{\"api_key\": \"<<redacted:assignment:1-8>>\"}'),
        ("password: hunter2", "password: <<redacted:assignment:1-8>>"),
        ("client_secret='x'", "client_secret='<<redacted:assignment:1-8>>'"),
        ("Bearer abcdef123456", "Bearer <<redacted:bearer:9-16>>"),
        ("curl -H 'basic dTpwYXNzd29yZA=='", "curl -H 'basic <<redacted:basic:9-16>>'"),
    ],
)
def test_assignments_and_schemes(before: str, after: str) -> None:
    assert CONTENT.text(before)[0] == after


@pytest.mark.parametrize(
    "text",
    [
        "task-management-system-overview",
        "the key token is basic, a secret",
        "API_KEY=$OPENAI_API_KEY and ${{ secrets.TOKEN }}",
        '{"password": null, "secret": 12}',
        "max_tokens=100, tokens: 5",
        "bearer of bad news arrives",
        "basic understanding",
        "a" * 64,
        "100%25 of it",
        '{"secret": 12} {"x":[{"secret":12}],"y":3}',
    ],
)
def test_clean_text_stays(text: str) -> None:
    assert CONTENT.value(text) == (text, [])


def test_names_of_keys_count_in_structures_and_in_nested_json() -> None:
    mark = "<<redacted:assignment:1-8>>"
    value = {"api_key": "abc", "args": '{"password":"a\\"b","n":1,"headers":{"Cookie":"c"}}'}
    out, removals = CONTENT.value(value)
    inner = f'{{"password":"{mark}","n":1,"headers":{{"Cookie":"<<redacted:header:1-8>>"}}}}'
    assert out == {"api_key": mark, "args": inner}
    assert sorted(r.pointer for r in removals) == ["/api_key", "/args", "/args"]


# --- the cases ----------------------------------------------------------------------------------


def test_c41_environment_output_in_a_tool_result() -> None:
    content = f"HOME=/w\nAPI_KEY={KEY}\n"
    row = {"message": {"content": [{"type": "tool_result", "content": content}]}}
    out, removals = CONTENT.value(row)
    kept = "HOME=/w\nAPI_KEY=<<redacted:assignment:17-32>>\n"
    assert out == {"message": {"content": [{"type": "tool_result", "content": kept}]}}
    assert removals == [Removal("/message/content/0/content", "assignment")]


def test_c43_a_key_split_over_deltas() -> None:
    out, rules = CONTENT.chunks(["key=sk-test-AAAAAAAA", "", "AAAAAAAAAAAAAAAA ok"])
    assert out == ["key=<<redacted:sk:17-32>>", "", " ok"]
    assert rules == ["sk"]


def test_c43b_base64_url_and_json_in_json() -> None:
    row = {
        "h": {"authorization": "Basic " + base64.b64encode(f"u:{KEY}".encode()).decode()},
        "url": f"https://h.test/x?key={KEY}",
        "nested": json.dumps({"k": json.dumps({"key": KEY})}),
    }
    out, removals = CONTENT.value(row)
    assert isinstance(out, dict)
    assert [r.pointer for r in removals] == ["/h/authorization", "/url", "/nested"]
    assert json.loads(json.loads(out["nested"])["k"]) == {"key": "<<redacted:sk:17-32>>"}
    assert out["url"] == "https://h.test/x?key=<<redacted:query:17-32>>"
    assert "AAAA" not in json.dumps(out)


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=90))
def test_c48_a_marker_tells_a_rule_and_a_length_class_only(secret: str) -> None:
    other = "x" * len(secret)
    for make in (lambda s: {"headers": {"cookie": s}}, lambda s: f"see http://h/?key={s} x"):
        assert DEFAULT.value(make(secret))[0] == DEFAULT.value(make(other))[0]


@pytest.mark.parametrize(
    ("length", "name"),
    [(1, "1-8"), (8, "1-8"), (9, "9-16"), (16, "9-16"), (17, "17-32"), (32, "17-32"),
     (33, "33-64"), (64, "33-64"), (65, "65+"), (10**6, "65+")],
)  # fmt: skip
def test_length_classes(length: int, name: str) -> None:
    assert marker("env", length) == f"<<redacted:env:{name}>>"


# --- properties ---------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [*TOKENS.values(), *MORE, *(marker(rule, 20) for rule in RULES), "<<redacted:x:1-8>>",
     "API_KEY=", "password", '"', "'", "\\", '\\"', ":", "=", " ", "\n", ",", "}", "{", "[", "]",
     "https://", "@", "?key=", "&token=", "#", "/", "Bearer ", "Basic ", "dTpw", "%2D", "%",
     "a", "1", "\u00e9", "Authorization: ", "cookie", "X_TOKEN=", "null", "$A", "\\u0026"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=10).map("".join)
NAMES = TEXTS | st.sampled_from(["headers", "env", "Cookie", "api_key", "name", "value", "X_KEY"])
JSONS = st.recursive(
    TEXTS | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4)
    | inner.map(json.dumps),
    max_leaves=8,
)  # fmt: skip


@given(JSONS, st.sampled_from([DEFAULT, CONTENT]))
def test_redacting_twice_is_redacting_once(value: JSON, redactor: Redactor) -> None:
    before = json.dumps(value)
    once, removals = redactor.value(value)
    assert json.dumps(value) == before, "the argument was changed"
    assert redactor.value(once) == (once, [])
    assert bool(removals) == (json.dumps(once) != before)


@given(JSONS)
def test_the_short_look_says_nothing_where_the_walk_removes(value: JSON) -> None:
    _, found = DEFAULT._walk(value, 0)
    assert not (found and nothing_to_remove(value))


@pytest.mark.parametrize(
    "value",
    [
        {" ENV ": {"A_TOKEN": "x"}},
        {"X-Headers": {"Cookie": "x"}},
        {"Authorization": "Bearer abc"},
        {"a": ["http:\\/\\/h/?key=abc"]},
        {"http://h/?key=abc": 1},
        {"a": "\ud800", "headers": {"cookie": "x"}},
    ],
)
def test_the_short_look_sees_every_spelling(value: JSON) -> None:
    assert DEFAULT.value(value)[1]
    assert nothing_to_remove({"a": ["plain", 1, None, 0.5], "path": "/a/b"})


@given(st.lists(TEXTS, max_size=6))
def test_chunks_are_the_joined_text(parts: list[str]) -> None:
    out, rules = CONTENT.chunks(parts)
    assert len(out) == len(parts)
    assert ("".join(out), rules) == CONTENT.text("".join(parts))


@given(st.lists(TEXTS, max_size=3), st.sampled_from([*TOKENS.values(), *MORE]))
def test_no_token_survives(around: list[str], token: str) -> None:
    text = " ".join([*around, token, *around])
    # A token counts where a word begins: "risk-..." holds no key.
    assert f" {token}" not in f" {CONTENT.text(text)[0]}"


def test_depth_is_no_limit() -> None:
    deep: JSON = {"headers": {"cookie": "c"}}
    for _ in range(20_000):
        deep = [deep]
    out, removals = CONTENT.value(deep)
    assert removals[0].pointer == "/0" * 20_000 + "/headers/cookie"
    for _ in range(20_000):
        assert isinstance(out, list)
        out = out[0]
    assert out == {"headers": {"cookie": "<<redacted:header:1-8>>"}}
    text = "[" * 20_000 + f'"{KEY}"' + "]" * 20_000
    assert KEY not in str(CONTENT.value(text)[0])


def test_a_policy_without_names_removes_nothing_by_name() -> None:
    bare = Redactor(Policy("bare", frozenset(), frozenset(), r"(?!)"))
    value = {"headers": {"cookie": "c"}, "env": {"KEY": "k"}, "u": "http://h/?key=1"}
    assert bare.value(value) == (value, [])


@pytest.mark.parametrize("text", ["a_" * 50_000, "%41" * 50_000 + "%", "http://" + "@" * 100_000,
                                  "-----BEGIN PRIVATE KEY-----" * 5000, "API_KEY=(" * 20_000,
                                  "AB_" * 50_000, "password=" + "(" * 100_000,
                                  "a://" * 30_000, "key\"'" * 30_000])  # fmt: skip
def test_hostile_text_takes_linear_time(text: str) -> None:
    # The global test timeout is the assertion: a quadratic pattern takes many minutes here.
    out, _ = CONTENT.text(text)
    assert MARKER.sub("", out) == "" or len(out) > 0
