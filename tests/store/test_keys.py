"""The state directory: keys and secrets, owner-only, made once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from playhead.core.sign import PrivateKey, load_private_key, sign_note, verify_note
from playhead.errors import Refused, TooLarge, Unreadable
from playhead.store.keys import KeyRing, state_dir

OTHER = PrivateKey("example.com/other", bytes(32)).public()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_where_the_state_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PLAYHEAD_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_dir() == tmp_path / "home" / ".local" / "state" / "playhead"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_dir() == tmp_path / "xdg" / "playhead"
    monkeypatch.setenv("PLAYHEAD_STATE", str(tmp_path / "named"))
    assert KeyRing().state == tmp_path / "named"


def test_looking_makes_nothing(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "state")
    assert (ring.signing_key(), ring.public_key(), ring.trusted()) == (None, None, [])
    assert ring.run_secret("run") is None
    assert not (tmp_path / "state").exists()


def test_a_key_is_made_once_and_owner_only(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "state")
    key = ring.signing_key(create=True)
    assert key is not None
    assert key.name == "playhead-" + key.public().fingerprint[:8]
    assert KeyRing(tmp_path / "state").signing_key(create=True) == key
    assert ring.trusted() == [key.public()]
    path = tmp_path / "state" / "keys" / "signing.pem"
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert load_private_key(path.read_bytes()).seed == key.seed
    assert verify_note(sign_note("t\n", key), ring.trusted())[1] == [key.public()]


def test_a_key_without_a_name_line_is_read(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    key = ring.new_key("example.com/me")
    path = tmp_path / "keys" / "signing.pem"
    path.write_bytes(key.to_pem())
    read = ring.signing_key()
    assert read is not None
    assert (read.seed, read.name) == (key.seed, "playhead-" + key.public().fingerprint[:8])


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, bits: int) -> None:
    ring = KeyRing(tmp_path)
    ring.new_key()
    path = tmp_path / "keys" / "signing.pem"
    path.chmod(bits)
    with pytest.raises(Refused) as caught:
        ring.signing_key(create=True)
    assert f"chmod 600 {path}" in caught.value.remedy


@pytest.mark.parametrize(
    "content", [b"", b"junk", b"# playhead key a+b\n" + bytes(32), b"# playhead key \xff\n"]
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys" / "signing.pem"
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Refused) as caught:
        KeyRing(tmp_path).signing_key(create=True)
    assert caught.value.place.file == str(path)
    assert path.read_bytes() == content


def test_a_link_in_place_of_the_key_is_refused(tmp_path: Path) -> None:
    KeyRing(tmp_path / "a").new_key()
    (tmp_path / "b" / "keys").mkdir(parents=True)
    (tmp_path / "b/keys/signing.pem").symlink_to(tmp_path / "a/keys/signing.pem")
    with pytest.raises(Unreadable, match="link"):
        KeyRing(tmp_path / "b").signing_key(create=True)


def test_a_key_is_replaced_only_by_force_and_stays_trusted(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    old = ring.new_key("example.com/me")
    with pytest.raises(Refused, match="there is a signing key"):
        ring.new_key("example.com/me")
    assert ring.signing_key() == old
    new = ring.new_key("example.com/me", force=True)
    assert new != old
    assert ring.signing_key() == new
    assert ring.trusted() == [new.public(), old.public()]


@pytest.mark.parametrize("name", ["a b", "a+b", "a\nb"])
def test_a_name_that_cannot_be_makes_no_key(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="key name"):
        KeyRing(tmp_path).new_key(name)
    assert not (tmp_path / "keys").exists()


def test_trust_is_kept_once(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    assert ring.trust(OTHER) == ring.trust(OTHER)
    (tmp_path / "keys" / "trusted" / "note.txt").write_text("not a key")
    assert ring.trusted() == [OTHER]


def test_a_broken_trusted_key_is_named(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    path = ring.trust(OTHER)
    path.write_text(OTHER.to_vkey()[:-5])
    with pytest.raises(Refused) as caught:
        ring.trusted()
    assert caught.value.place.file == str(path)
    path.write_bytes(b"x" * 100_000)
    with pytest.raises(TooLarge):
        ring.trusted()


def test_a_run_secret_is_made_once_per_run(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    secret = ring.run_secret("../../run", create=True)
    assert secret is not None and len(secret) == 32
    assert ring.run_secret("../../run") == ring.run_secret("../../run", create=True) == secret
    assert ring.run_secret("other", create=True) != secret
    files = list((tmp_path / "secrets").iterdir())
    assert {mode(path) for path in files} == {0o600}
    assert all(len(path.name) == 64 for path in files) and len(files) == 2


def test_a_run_secret_of_another_size_is_refused(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    ring.run_secret("run", create=True)
    path = next((tmp_path / "secrets").iterdir())
    path.write_bytes(b"short")
    with pytest.raises(Refused, match="32 bytes"):
        ring.run_secret("run", create=True)


def test_threads_that_race_agree(tmp_path: Path) -> None:
    def make(_: int) -> tuple[PrivateKey | None, bytes | None]:
        ring = KeyRing(tmp_path)
        return ring.signing_key(create=True), ring.run_secret("run", create=True)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(16)))) == 1
    leftovers = [p.name for p in tmp_path.rglob("*") if p.name.endswith(".tmp")]
    assert leftovers == []


def test_processes_that_race_agree(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from playhead.store.keys import KeyRing\n"
        "ring = KeyRing(Path(sys.argv[1])); sys.stdin.read()\n"
        "print(ring.signing_key(create=True).seed.hex(), ring.run_secret('r', create=True).hex())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for _ in range(4)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
        racer.stdin = None
    seen = {racer.communicate(timeout=60)[0] for racer in racers}
    assert len(seen) == 1 and len(seen.pop().split()) == 2
