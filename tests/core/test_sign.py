"""Ed25519 keys and signed notes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.note import format_note, parse_note
from playhead.core.sign import (
    PrivateKey,
    PublicKey,
    load_private_key,
    load_public_key,
    parse_vkey,
    sign_note,
    verify_note,
)
from playhead.errors import Refused, SignatureError

# RFC 8032, 7.1, test 2.
SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
RAW = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
KEY = PrivateKey("example.com/log", SEED)
OTHER = PrivateKey("example.com/log", bytes(32))
TEXT = "hello\n\nworld\n"


def test_the_rfc_8032_vector() -> None:
    assert KEY.public().raw == RAW
    assert KEY.sign(b"\x72").hex() == SIGNATURE
    assert KEY.public().verify(b"\x72", bytes.fromhex(SIGNATURE))
    assert not KEY.public().verify(b"\x73", bytes.fromhex(SIGNATURE))
    assert not KEY.public().verify(b"\x72", b"short")


def test_the_published_verifier_key_of_a_known_log() -> None:
    vkey = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
    key = parse_vkey(vkey)
    assert (key.name, key.key_hash.hex(), key.to_vkey()) == ("sum.golang.org", "033de0ae", vkey)


def test_a_key_reads_back_from_every_form() -> None:
    public = KEY.public()
    assert load_public_key(public.to_vkey().encode() + b"\n") == public
    assert load_public_key(public.to_pem(), "example.com/log") == public
    assert load_public_key(RAW, "example.com/log") == public
    assert load_private_key(KEY.to_pem(), "example.com/log") == KEY
    assert load_private_key(SEED, "example.com/log") == KEY


def x25519_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = X25519PrivateKey.from_private_bytes(SEED)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def encrypted_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    key = Ed25519PrivateKey.from_private_bytes(SEED)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))


BROKEN = [b"", b"x" * 31, b"\xff" * 40, b"-----BEGIN X-----\n", b"y" * 100_000]


@pytest.mark.parametrize("data", [*BROKEN, KEY.public().to_pem(), x25519_pem(), encrypted_pem()])
def test_other_private_keys_are_refused(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        load_private_key(data)
    assert "PKCS#8" in caught.value.remedy


@pytest.mark.parametrize("data", [*BROKEN, KEY.to_pem(), KEY.public().to_vkey().encode()[:-4]])
def test_other_public_keys_are_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        load_public_key(data)


@pytest.mark.parametrize(
    "vkey",
    [
        KEY.public().to_vkey().replace("log+", "lag+"),
        KEY.public().to_vkey().replace("log+", "l g+"),
        "name+00000000+" + base64.b64encode(b"\x02" + RAW).decode(),
        "name+00000000",
        "+00000000+AAAA",
    ],
)
def test_a_vkey_that_does_not_hold_is_refused(vkey: str) -> None:
    with pytest.raises(Refused):
        parse_vkey(vkey)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u2003b", "a\nb", "a\x01b"])
def test_c2sp_key_names(name: str) -> None:
    with pytest.raises(Refused, match="key name"):
        PublicKey(name, RAW)


def test_a_seed_is_never_shown() -> None:
    assert SEED.hex() not in repr(KEY) and repr(SEED) not in repr(KEY)


def test_a_signed_note_verifies_and_names_its_signer() -> None:
    note, signers = verify_note(sign_note(TEXT, KEY), [OTHER.public(), KEY.public()])
    assert (note.text, signers) == (TEXT, [KEY.public()])


def test_unknown_signatures_are_passed_over() -> None:
    line = parse_note(sign_note(TEXT, KEY)).signatures[0]
    grease = ("grease.example", b"\xff\xff\xff\xff", b"\xff" * 90)
    known = (line.name, line.key_hash, line.signature)
    same_name = (line.name, b"\0\0\0\0", b"not for us")
    _, signers = verify_note(format_note(TEXT, [grease, same_name, known]), [KEY.public()])
    assert signers == [KEY.public()]


def test_no_trusted_signature_is_an_error() -> None:
    with pytest.raises(SignatureError, match="no trusted key"):
        verify_note(sign_note(TEXT, OTHER), [KEY.public()])
    with pytest.raises(SignatureError, match="no trusted key"):
        verify_note(sign_note(TEXT, KEY), [])


def test_a_bad_signature_of_a_known_key_rejects_even_beside_a_good_one() -> None:
    good = parse_note(sign_note(TEXT, KEY)).signatures[0]
    bad = parse_note(sign_note(TEXT, OTHER)).signatures[0]
    lines = [
        (good.name, good.key_hash, good.signature),
        (bad.name, bad.key_hash, bad.signature[::-1]),
    ]
    with pytest.raises(SignatureError, match="does not fit"):
        verify_note(format_note(TEXT, lines), [KEY.public(), OTHER.public()])


@given(st.data())
def test_any_changed_character_of_the_text_is_found(data: st.DataObject) -> None:
    note = sign_note(TEXT, KEY)
    at = data.draw(st.integers(0, len(TEXT) - 2))
    changed = note[:at] + ("X" if note[at] != "X" else "Y") + note[at + 1 :]
    with pytest.raises(SignatureError):
        verify_note(changed, [KEY.public()])


def test_a_text_without_note_form_is_not_signed() -> None:
    for text in ("no newline", "a\rb\n", "\ud800\n"):
        with pytest.raises(SignatureError):
            sign_note(text, KEY)
