"""Tiny checkpoints and stores for tests, and broken ones by keyword.

Everything is written by hand (struct + json), not by the safetensors library, so that a test can choose odd header
lengths, impossible shapes, holes and overlaps. Sizes are small enough to write in a millisecond.
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ITEM_BYTES = {"U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E8M0": 1, "BF16": 2, "F16": 2, "F32": 4, "I64": 8, "I32": 4}

QWEN_PREFIX = "model.language_model.layers.1.ple.ple_embedding."
SHARD = QWEN_PREFIX + "ngram_embedding.shard_{}.weight"
BLOCK_SCALE = QWEN_PREFIX + "ngram_embedding.shard_{}.weight_scale"
SCALE = QWEN_PREFIX + "ngram_embedding.weight_scale"
SCALE_2 = QWEN_PREFIX + "ngram_embedding.weight_scale_2"
MULTIPLIERS = QWEN_PREFIX + "layer_multipliers"
HEAD_SIZES = QWEN_PREFIX + "ngram_heads_vocab_sizes"
HEAD_OFFSETS = QWEN_PREFIX + "ngram_heads_offsets"

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 400001920\n"
)
HTML_PAGE = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>Not Found</body></html>\n"


@dataclass
class T:
    """One tensor as a test wants it in the header; ``header`` overrides single header fields, true or not."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes = b""
    header: dict[str, Any] = field(default_factory=dict)


def write_safetensors(
    path: Path,
    tensors: dict[str, T] | list[tuple[str, T]],
    *,
    metadata: dict[str, str] | None = None,
    pad: int = 0,
    length: int | None = None,
    gap_before: str | None = None,
    tail: bytes = b"",
) -> dict[str, int]:
    """Writes one file and returns each tensor's absolute offset.

    ``pad`` spaces make the header length odd; ``length`` lies about it; ``gap_before`` leaves an 8-byte hole before
    that tensor; a list of pairs may name a tensor twice; ``tail`` follows the last tensor.
    """
    pairs = list(tensors.items()) if isinstance(tensors, dict) else tensors
    parts: list[str] = []
    body = b""
    begins: dict[str, int] = {}
    if metadata is not None:
        parts.append('"__metadata__":' + json.dumps(metadata))
    for name, tensor in pairs:
        if name == gap_before:
            body += b"\xaa" * 8
        begins[name] = len(body)
        body += tensor.data
        entry = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begins[name], len(body)]}
        entry.update(tensor.header)
        parts.append(json.dumps(name) + ":" + json.dumps(entry))
    text = ("{" + ",".join(parts) + "}").encode() + b" " * pad
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + body + tail)
    return {name: 8 + len(text) + begin for name, begin in begins.items()}


def write_index(directory: Path, files: dict[str, dict[str, T]]) -> None:
    """Writes the index that maps each tensor to its file."""
    weight_map = {name: file for file, tensors in files.items() for name in tensors}
    total = sum(len(t.data) for tensors in files.values() for t in tensors.values())
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=1)
    (directory / "model.safetensors.index.json").write_text(text)


def primes_from(low: int, count: int) -> list[int]:
    """The first ``count`` primes that are at least ``low``."""
    found: list[int] = []
    n = low
    while len(found) < count:
        if n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)):
            found.append(n)
        n += 1
    return found


def finite_bytes(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Random bytes without the two E4M3 NaN codes."""
    out = rng.integers(0, 256, shape, dtype=np.uint8)
    out[(out & 0x7F) == 0x7F] ^= 1
    return out


def splitmix64(v: int) -> int:
    """One output of splitmix64 (Steele, Lea and Flood 2014)."""
    mask = (1 << 64) - 1
    v = (v + 0x9E3779B97F4A7C15) & mask
    v = ((v ^ (v >> 30)) * 0xBF58476D1CE4E5B9) & mask
    v = ((v ^ (v >> 27)) * 0x94D049BB133111EB) & mask
    return v ^ (v >> 31)


def qwen_multipliers(n: int, vocab: int, seed: int = 1234) -> list[int]:
    """The PLE multipliers of the first layer, as the engines derive them."""
    half = max(1, ((2**63 - 1) // vocab) // 2)
    return [2 * (splitmix64(seed + 0x9E3779B97F4A7C15 * (k + 1)) % half) + 1 for k in range(n)]


@dataclass
class Qwen:
    """A tiny qwen4_exp checkpoint: what was written, for comparison."""

    path: Path
    rows: NDArray[np.uint8]
    """uint8 [padded rows, row bytes]; for nvfp4 the packed values only."""
    scales: NDArray[np.uint8] | None
    """nvfp4 block scales, uint8 [padded rows, dim / 16]."""
    config: dict[str, Any]
    dim: int
    heads: int
    rows_per_shard: int


def qwen_config(
    *, dim: int, heads_per_ngram: int, shards: int, vocab: int = 512, base: int = 50, divisor: int = 64, n: int = 3
) -> dict[str, Any]:
    """config.json of a tiny qwen4_exp checkpoint with one PLE layer (decoder layer 1)."""
    width = dim * heads_per_ngram * (n - 1)
    return {
        "architectures": ["Qwen4ExpForConditionalGeneration"],
        "model_type": "qwen4_exp",
        "dtype": "bfloat16",
        "text_config": {
            "model_type": "qwen4_exp_text",
            "vocab_size": vocab,
            "hidden_size": width,
            "num_hidden_layers": 2,
            "eos_token_id": 1,
            "ple_layer_ids": [2],
            "ple_embed_dim": width,
            "ngram_size": n,
            "heads_per_ngram": heads_per_ngram,
            "ngram_vocab_size_base": base,
            "make_ngram_vocab_size_divisible_by": divisor,
            "split_ngram_parts": shards,
        },
    }


def qwen_tensors(
    kind: str, config: dict[str, Any], rng: np.random.Generator
) -> tuple[dict[str, T], NDArray[np.uint8], NDArray[np.uint8] | None, int, int]:
    """All tensors of a tiny PLE layer; kind is fp8, bf16 or nvfp4. Also rows, block scales, dim, rows per shard."""
    text = config["text_config"]
    n, per = text["ngram_size"], text["heads_per_ngram"]
    heads = (n - 1) * per
    dim = text["ple_embed_dim"] // heads
    sizes = primes_from(text["ngram_vocab_size_base"], heads)
    divisor, shards = text["make_ngram_vocab_size_divisible_by"], text["split_ngram_parts"]
    padded = -(-sum(sizes) // divisor) * divisor
    per_shard = -(-padded // shards)
    row_bytes = {"fp8": dim, "bf16": 2 * dim, "nvfp4": dim // 2}[kind]
    rows = finite_bytes(rng, (padded, row_bytes))
    if kind == "bf16":
        # Keep exponents away from infinity and NaN.
        rows[:, 1::2] &= 0xBF
    dtype, columns = {"fp8": ("F8_E4M3", dim), "bf16": ("BF16", dim), "nvfp4": ("U8", dim // 2)}[kind]
    scales = finite_bytes(rng, (padded, dim // 16)) & np.uint8(0x7F) if kind == "nvfp4" else None
    if scales is not None:
        scales[scales == 0x7F] = 0x7E
    tensors: dict[str, T] = {}
    for s in range(shards):
        low, high = s * per_shard, min((s + 1) * per_shard, padded)
        tensors[SHARD.format(s)] = T(dtype, (high - low, columns), rows[low:high].tobytes())
        if scales is not None:
            tensors[BLOCK_SCALE.format(s)] = T("F8_E4M3", (high - low, dim // 16), scales[low:high].tobytes())
    if kind == "fp8":
        tensors[SCALE] = T("BF16", (1,), struct.pack("<H", 0x3951))
    if kind == "nvfp4":
        tensors[SCALE_2] = T("F32", (1,), struct.pack("<f", 0.0123))
    offsets = [sum(sizes[:h]) for h in range(heads)]
    tensors[MULTIPLIERS] = T("I64", (n,), struct.pack(f"<{n}q", *qwen_multipliers(n, text["vocab_size"])))
    tensors[HEAD_SIZES] = T("I64", (heads,), struct.pack(f"<{heads}q", *sizes))
    tensors[HEAD_OFFSETS] = T("I64", (heads,), struct.pack(f"<{heads}q", *offsets))
    return tensors, rows, scales, dim, per_shard


def make_qwen(
    path: Path,
    kind: str = "fp8",
    *,
    dim: int = 32,
    heads_per_ngram: int = 2,
    shards: int = 4,
    files: int = 1,
    base: int = 50,
    seed: int = 0,
    pad: int = 3,
    drop: tuple[str, ...] = (),
    replace: dict[str, T] | None = None,
    rename: dict[str, str] | None = None,
    config: dict[str, Any] | None = None,
    **write: Any,
) -> Qwen:
    """Writes a tiny qwen4_exp checkpoint; single file, or indexed over several.

    ``drop`` leaves tensors out, ``replace`` swaps them, ``rename`` renames them, ``config`` updates the text config
    (None deletes a field); other keywords go to `write_safetensors` of the first file.
    """
    path.mkdir(parents=True, exist_ok=True)
    cfg = qwen_config(dim=dim, heads_per_ngram=heads_per_ngram, shards=shards, base=base)
    rng = np.random.default_rng(seed)
    tensors, rows, scales, dim, per_shard = qwen_tensors(kind, cfg, rng)
    for name in drop:
        del tensors[name]
    tensors.update(replace or {})
    for old, new in (rename or {}).items():
        tensors[new] = tensors.pop(old)
    for key, value in (config or {}).items():
        if value is None:
            cfg["text_config"].pop(key, None)
        else:
            cfg["text_config"][key] = value
    (path / "config.json").write_text(json.dumps(cfg))
    if files == 1:
        write_safetensors(path / "model.safetensors", tensors, pad=pad, **write)
    else:
        names = list(tensors)
        groups = {
            f"model-{k + 1:05d}-of-{files:05d}.safetensors": {n: tensors[n] for n in names[k::files]}
            for k in range(files)
        }
        for k, (file, group) in enumerate(groups.items()):
            write_safetensors(path / file, group, pad=pad + k, **(write if k == 0 else {}))
        write_index(path, groups)
    return Qwen(path, rows, scales, cfg, dim, 2 * heads_per_ngram, per_shard)


@dataclass
class V41:
    """A tiny deepseek_v41 checkpoint: values and scales per layer, for comparison."""

    path: Path
    values: list[NDArray[np.uint8]]
    scales: list[NDArray[np.uint8]]
    config: dict[str, Any]


def tiny_tokenizer(words: int = 40) -> dict[str, Any]:
    """A word-level tokenizer of ``words`` words whose second half repeats the first in upper case."""
    special = ["<s>", "</s>", "<pad>", "<image>"]
    half = (words - len(special)) // 2
    names = special + [f"w{i}" for i in range(half)] + [f"W{i}" for i in range(words - len(special) - half)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": s, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for i, s in enumerate(special)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(names)}, "unk_token": "<pad>"},
    }  # fmt: skip


def tiny_token_map(words: int = 40) -> NDArray[np.int64]:
    """The token map of `tiny_tokenizer`: int64 [words]."""
    half = (words - 4) // 2
    return np.array([*range(4 + half), *range(4, 4 + words - 4 - half)], dtype=np.int64)


def make_v41(
    path: Path,
    *,
    words: int = 40,
    compressed: int | None = None,
    layers: tuple[int, ...] = (1, 3),
    dim: int = 64,
    base: int = 11,
    drop: tuple[str, ...] = (),
    replace: dict[str, T] | None = None,
    config: dict[str, Any] | None = None,
    seed: int = 0,
    tokenizer: bool = True,
    rows_per_layer: int | None = None,
) -> V41:
    """Writes a tiny deepseek_v41 checkpoint in one file, n = 3 with two heads per order.

    ``rows_per_layer`` pads every table to that many rows; ``compressed`` lies about the compressed vocabulary.
    """
    path.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    heads = 4
    primes = primes_from(base, heads * len(layers))
    rows = [sum(primes[k * heads : (k + 1) * heads]) for k in range(len(layers))]
    if rows_per_layer is not None:
        rows = [rows_per_layer] * len(layers)
    cfg: dict[str, Any] = {
        "architectures": ["DeepseekV41ForCausalLM"],
        "model_type": "deepseek_v41",
        "dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "image_token_id": 3,
        "text_config": {
            "model_type": "deepseek_v41_text",
            "vocab_size": words,
            "hidden_size": 64,
            "engram_layer_ids": list(layers),
            "engram_num_embeddings": rows,
            "engram_max_ngram_size": 3,
            "engram_vocab_size": base,
            "engram_n_heads": 2,
            "engram_head_dim": dim,
            "engram_pad_token_id": 2,
            "engram_compressed_vocab_size": len(set(tiny_token_map(words).tolist()))
            if compressed is None
            else compressed,
        },
    }
    for key, value in (config or {}).items():
        if value is None:
            cfg["text_config"].pop(key, None)
        else:
            cfg["text_config"][key] = value
    tensors: dict[str, T] = {}
    values, scales = [], []
    for layer, n in zip(layers, rows, strict=True):
        v = finite_bytes(rng, (n, dim))
        s = rng.integers(110, 130, (n, dim // 32), dtype=np.uint8)
        values.append(v)
        scales.append(s)
        tensors[f"layers.{layer}.engram.q_weight"] = T("BF16", (3,), b"\0" * 6)
        tensors[f"layers.{layer}.engram.embed.weight"] = T("F8_E4M3", (n, dim), v.tobytes())
        tensors[f"layers.{layer}.engram.embed.scale"] = T("F8_E8M0", (n, dim // 32), s.tobytes())
    for name in drop:
        del tensors[name]
    tensors.update(replace or {})
    (path / "config.json").write_text(json.dumps(cfg))
    if tokenizer:
        (path / "tokenizer.json").write_text(json.dumps(tiny_tokenizer(words)))
    write_safetensors(path / "model.safetensors", tensors, pad=1)
    return V41(path, values, scales, cfg)


def make_store(
    path: Path,
    *,
    shards: int = 3,
    rows: int = 10,
    width: int = 8,
    data: NDArray[np.uint8] | None = None,
    manifest: dict[str, Any] | bool | None = None,
) -> NDArray[np.uint8]:
    """The small table: ``shards`` files of ``rows`` rows of ``width`` bytes, byte value = shard number; its rows.

    ``manifest`` True writes a true manifest.json, a dict updates its layout (to contradict the files).
    """
    path.mkdir(parents=True, exist_ok=True)
    if data is None:
        data = np.repeat((np.arange(shards) % 251).astype(np.uint8), rows)[:, None].repeat(width, axis=1)
    for s in range(shards):
        (path / f"shard_{s:03d}.bin").write_bytes(data[s * rows : (s + 1) * rows].tobytes())
    if manifest:
        badge = max(1, 4096 // width)
        layout = {
            "shards": shards, "rows_per_shard": rows, "width": width, "elem_bytes": 1,
            "badge_rows": badge, "badge_bytes": badge * width, "total_rows": len(data),
        }  # fmt: skip
        layout.update(manifest if isinstance(manifest, dict) else {})
        (path / "manifest.json").write_text(json.dumps({"layout": layout}))
    return data


def cut(path: Path, nbytes: int) -> None:
    """Cuts the last ``nbytes`` bytes off a file."""
    os.truncate(path, path.stat().st_size - nbytes)
