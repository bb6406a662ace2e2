"""The two demo checkpoints: released geometry and names, sparse files, synthetic bytes.

Geometry and names follow the published checkpoints: Qwen3.8-Flash-Next (PLE: 128 shards of [2500012, 160] F8_E4M3, one
BF16 scale, three I64 hash vectors) and DeepSeek-V4.1 (two Engram layers of [384006168, 256] and [384016682, 256]
F8_E4M3 with one F8_E8M0 scale per 32 columns). Nothing of the released weights or tokenizer is in them.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.demo.sparse import Part, SparseRows, Tensor, write_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

QWEN_SHARDS = 128
QWEN_SHARD_ROWS = 2_500_012
QWEN_ROW_BYTES = 160
QWEN_FILES = 131
QWEN_FIRST_SHARD_FILE = 4
QWEN_SCALE_BF16 = 0x3951
"""209 / 2^20, the released scale, as BF16 bits."""

QWEN_MULTIPLIERS = (23703573157769, 20109073645365, 8052911324071)
QWEN_HEAD_SIZES = (
    20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069, 20000077,
    20000081, 20000093, 20000107, 20000147, 20000153, 20000159, 20000161, 20000171,
)  # fmt: skip
"""The 16 primes from 20,000,000 upwards."""

QWEN_CONFIG: dict[str, Any] = {
    "architectures": ["Qwen4ExpForConditionalGeneration"],
    "model_type": "qwen4_exp",
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "qwen4_exp_text",
        "vocab_size": 248320,
        "hidden_size": 2560,
        "eos_token_id": 248044,
        "ple_layer_ids": [2],
        "ple_embed_dim": 2560,
        "ngram_size": 3,
        "heads_per_ngram": 8,
        "ngram_vocab_size_base": 20_000_000,
        "make_ngram_vocab_size_divisible_by": 128,
        "split_ngram_parts": QWEN_SHARDS,
    },
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
}

V41_LAYERS = (1, 14)
V41_ROWS = (384_006_168, 384_016_682)
V41_DIM = 256
V41_VOCAB = 129_280
V41_COMPRESSED = 99_092
V41_IMAGE_TOKEN = 129_264

V41_CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV41ForCausalLM"],
    "model_type": "deepseek_v41",
    "dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "image_token_id": V41_IMAGE_TOKEN,
    "quantization_config": {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [32, 32],
        "scale_fmt": "ue8m0",
    },
    "text_config": {
        "model_type": "deepseek_v41_text",
        "vocab_size": V41_VOCAB,
        "hidden_size": 5120,
        "num_hidden_layers": 40,
        "hc_mult": 4,
        "engram_layer_ids": list(V41_LAYERS),
        "engram_num_embeddings": list(V41_ROWS),
        "engram_max_ngram_size": 4,
        "engram_vocab_size": 16_000_000,
        "engram_n_heads": 8,
        "engram_head_dim": V41_DIM,
        "engram_pad_token_id": 2,
        "engram_compressed_vocab_size": V41_COMPRESSED,
    },
}


def build_qwen(directory: Path) -> SparseRows:
    """Writes the sparse PLE checkpoint (51.2 GB apparent) into ``directory`` and says where its rows lie."""
    directory.mkdir(parents=True, exist_ok=True)
    prefix = "model.language_model.layers.1.ple.ple_embedding."
    heads = np.array(QWEN_HEAD_SIZES, dtype="<i8")
    offsets = np.concatenate([np.zeros(1, dtype="<i8"), np.cumsum(heads)[:-1]]).astype("<i8")
    weight_map: dict[str, str] = {}
    total = 0

    small = {
        prefix + "ngram_embedding.weight_scale": Tensor("BF16", (1,), struct.pack("<H", QWEN_SCALE_BF16)),
        prefix + "layer_multipliers": Tensor("I64", (3,), struct.pack("<3q", *QWEN_MULTIPLIERS)),
        prefix + "ngram_heads_vocab_sizes": Tensor("I64", (16,), heads.tobytes()),
        prefix + "ngram_heads_offsets": Tensor("I64", (16,), offsets.tobytes()),
    }
    name = _file_name(QWEN_FIRST_SHARD_FILE - 1, QWEN_FILES)
    write_sparse(directory / name, small, metadata={"format": "pt"})
    weight_map.update(dict.fromkeys(small, name))
    total += sum(t.nbytes for t in small.values())

    rows = SparseRows(QWEN_ROW_BYTES)
    for shard in range(QWEN_SHARDS):
        name = _file_name(QWEN_FIRST_SHARD_FILE + shard, QWEN_FILES)
        tensor = prefix + f"ngram_embedding.shard_{shard}.weight"
        content = {tensor: Tensor("F8_E4M3", (QWEN_SHARD_ROWS, QWEN_ROW_BYTES))}
        # Odd header lengths on purpose: nothing in the format aligns a row.
        at = write_sparse(directory / name, content, metadata={"format": "pt"}, pad=shard % 8)
        rows.parts.append(Part(directory / name, at[tensor], shard * QWEN_SHARD_ROWS, QWEN_SHARD_ROWS))
        weight_map[tensor] = name
        total += content[tensor].nbytes
    _write_json(directory / "config.json", QWEN_CONFIG)
    _write_index(directory, weight_map, total)
    return rows


def build_v41(directory: Path) -> tuple[list[SparseRows], list[SparseRows]]:
    """Writes the sparse V4.1 checkpoint (203 GB apparent); returns where values and scales lie, per layer."""
    directory.mkdir(parents=True, exist_ok=True)
    weight_map: dict[str, str] = {}
    total = 0
    values: list[SparseRows] = []
    scales: list[SparseRows] = []
    for k, (layer, rows) in enumerate(zip(V41_LAYERS, V41_ROWS, strict=True)):
        prefix = f"layers.{layer}.engram."
        content = {
            prefix + "q_weight": Tensor("BF16", (4, 5120)),
            prefix + "embed.weight": Tensor("F8_E4M3", (rows, V41_DIM)),
            prefix + "embed.scale": Tensor("F8_E8M0", (rows, V41_DIM // 32)),
            prefix + "wkv.weight": Tensor("F8_E4M3", (25600, 6144)),
            prefix + "wkv.scale": Tensor("F8_E8M0", (800, 192)),
            prefix + "k_weight": Tensor("BF16", (4, 5120)),
        }
        name = _file_name(47 + k, 48)
        at = write_sparse(directory / name, content, pad=2 * k + 1)
        values.append(SparseRows(V41_DIM, [Part(directory / name, at[prefix + "embed.weight"], 0, rows)]))
        scales.append(SparseRows(V41_DIM // 32, [Part(directory / name, at[prefix + "embed.scale"], 0, rows)]))
        weight_map.update(dict.fromkeys(content, name))
        total += sum(t.nbytes for t in content.values())
    _write_json(directory / "config.json", V41_CONFIG)
    _write_json(directory / "tokenizer.json", synthetic_tokenizer())
    _write_index(directory, weight_map, total)
    return values, scales


def synthetic_tokenizer() -> dict[str, Any]:
    """A word-level tokenizer of 129280 made-up words whose normalised forms count exactly 99092.

    Words 3 .. 99090 are lower case; the rest repeat the first 30188 of them in upper case, which normalises to the same
    word. Only the image token keeps its released id.
    """
    special = {0: "<s>", 1: "</s>", 2: "<pad>", V41_IMAGE_TOKEN: "<image>"}
    vocab: dict[str, int] = {}
    source = 3
    for token in range(V41_VOCAB):
        if token in special:
            word = special[token]
        elif token < V41_COMPRESSED - 1:
            word = f"word{token}"
        else:
            word = f"WORD{source}"
            source += 1
        vocab[word] = token
    added = [
        {"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for i, text in special.items()
    ]  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<pad>"},
    }


def synthetic_token_map() -> NDArray[np.int64]:
    """The token map that `synthetic_tokenizer` must yield: int64 [129280], by construction rather than by hashing."""
    ids = np.arange(V41_VOCAB, dtype=np.int64)
    repeated = ids >= V41_COMPRESSED - 1
    repeated[V41_IMAGE_TOKEN] = False
    ids[V41_IMAGE_TOKEN] = V41_COMPRESSED - 1
    ids[repeated] = 3 + np.arange(int(repeated.sum()))
    return ids


def _file_name(number: int, of: int) -> str:
    return f"model-{number:05d}-of-{of:05d}.safetensors"


def _write_index(directory: Path, weight_map: dict[str, str], total: int) -> None:
    _write_json(
        directory / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map}
    )


def _write_json(path: Path, value: object) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
