"""Times the top 8 of ChromaDB and LanceDB: a program of its own, run by an interpreter that has these packages.

``python vector_stores.py COUNT NUMBERS QUERIES FOLDER`` prints ``{"name": {"version", "ms": [...], "fill_s"}}``. Both
hold as many vectors, drawn as for the NumPy scan; LanceDB gets an index from 100,000 on, as a person would give it, and
ChromaDB has one always.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: ChromaDB's index of more vectors takes hours of this machine to fill.
MOST_FOR_CHROMA, INDEXED_FROM = 100_000, 100_000
UNTIMED = 20


def timed(ask: Callable[[Any], object], queries: Any) -> list[float]:
    """Return the milliseconds of each query but the first ``UNTIMED``."""
    times = []
    for number, query in enumerate(queries):
        begin = time.perf_counter()
        ask(query)
        if number >= UNTIMED:
            times.append(1000 * (time.perf_counter() - begin))
    return times


def chroma(vectors: Any, queries: Any, folder: Path) -> dict[str, Any]:
    import chromadb

    begin = time.perf_counter()
    client = chromadb.PersistentClient(
        str(folder / "chroma"), chromadb.config.Settings(anonymized_telemetry=False)
    )
    collection = client.create_collection("pairs", metadata={"hnsw:space": "cosine"})
    for first in range(0, len(vectors), 5000):
        rows = vectors[first : first + 5000]
        collection.add(ids=[str(first + k) for k in range(len(rows))], embeddings=rows)
    filled = time.perf_counter() - begin
    times = timed(lambda query: collection.query(query_embeddings=[query], n_results=8), queries)
    return {"version": chromadb.__version__, "ms": times, "fill_s": filled}


def lance(vectors: Any, queries: Any, folder: Path) -> dict[str, Any]:
    import lancedb
    import pyarrow

    begin = time.perf_counter()
    flat = pyarrow.array(vectors.reshape(-1))
    column = pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    data = pyarrow.table({"id": pyarrow.array(range(len(vectors))), "vector": column})
    table = lancedb.connect(folder / "lance").create_table("pairs", data)
    if len(vectors) >= INDEXED_FROM:
        table.create_index(metric="cosine", vector_column_name="vector")
    filled = time.perf_counter() - begin
    times = timed(lambda query: table.search(query).limit(8).to_arrow(), queries)
    return {"version": lancedb.__version__, "ms": times, "fill_s": filled}


def main(count: int, numbers: int, queries: int, folder: Path) -> None:
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((count, numbers), dtype=np.float32)
    asked = draw.standard_normal((UNTIMED + queries, numbers), dtype=np.float32)
    found = {"LanceDB": lance(vectors, asked, folder)}
    if count <= MOST_FOR_CHROMA:
        found["ChromaDB"] = chroma(vectors, asked, folder)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
