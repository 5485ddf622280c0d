"""Makes the files of TestVectors with another implementation of the cryptography (OpenSSL, by Python's
package cryptography), from what the comments of header.go, pages.go, frames.go, slots.go, stream.go and ring.go say:

    python3 make.py
"""
import os
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SECRET = bytes(range(32))
KEY_ID = b"2026-11"
DATABASE = bytes(range(100, 116))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack(">I", crc ^ 0xFFFFFFFF)


def seal(key, text, about):
    nonce = os.urandom(12)
    return nonce + AESGCM(key).encrypt(nonce, text, about)


def slot(file_key, about, name):
    clear = bytes([len(KEY_ID)]) + KEY_ID.ljust(64, b"\0") + bytes([len(name)]) + name.ljust(64, b"\0")
    salt = os.urandom(32)
    wrapping = HKDF(hashes.SHA256(), 32, salt, b"jay: wrap a file key, version 1").derive(SECRET)
    body = (clear + salt + seal(wrapping, file_key, about + clear)).ljust(236, b"\0")
    return body + crc32c(body)


def header(file_key, layout, name):
    fixed = b"JAYSEAL\x01" + bytes([layout, 0, 0, 0]) + DATABASE
    return (fixed + crc32c(fixed) + slot(file_key, fixed, name)).ljust(512, b"\0")


def place(a, b):
    return struct.pack(">QQ", a, b)


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def main():
    text = b"".join(b"line %d\n" % i for i in range(1000))

    key = os.urandom(32)
    pages = [text[i : i + 4068] for i in range(0, len(text), 4068)]
    data = header(key, 1, b"000001.sst")
    for i, page in enumerate(pages):
        data += seal(key, page, place(i, int(i == len(pages) - 1)))
    write("000001.sst", data)

    key = os.urandom(32)
    data, offset = header(key, 2, b"000002.log"), 0
    for n in (1, 4999, len(text) - 5000):
        head = struct.pack(">QI", offset, n)
        data += head + crc32c(head) + seal(key, text[offset : offset + n], place(offset, n))
        offset += n
    write("000002.log", data)

    data = b""
    for i in range(3):
        key = os.urandom(32)
        record = b"record %d" % i
        one = header(key, 3, b"JAY.control") + struct.pack(">I", len(record)) + seal(key, record, place(i, len(record)))
        data += one.ljust(4096, b"\0")
    write("JAY.control", data)

    line = b"jay backup, format 2\n"
    key, text = os.urandom(32), b"0123456789" * 6600
    pages = [text[i : i + 65508] for i in range(0, len(text), 65508)]
    data = line + slot(key, line, b"backup")
    for i, page in enumerate(pages):
        data += seal(key, page, place(i, int(i == len(pages) - 1)))
    write("stream", data)

    start = b"JAYKEYS\x01" + DATABASE
    data = start + slot(os.urandom(32), start, b"identity")
    write("JAY.keys", data + crc32c(data))


main()
