"""Makes faults in the decoder for CUDA devices, one after the other, and lists which the tests notice.

    python tests/ptx/mutate.py [--missing] [--build DIR] [--jobs N] [WORD ...]

All faults, or those whose description or file contains one of the words; with --missing those that have not been run on
the present sources. A fault is a replacement in a copy of the sources; it counts as noticed if the tests of the decoder
fail, crash or do not end. Faults that change nothing a test could see have a reason. Ends with 1 if any other was not
noticed. Needs nvcc and CMake, and some twenty seconds for each fault.

Results are kept in faults.json as they come, so a run may be interrupted, and --missing goes on with it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("cmake", "csrc", "tests/cpp", "tests/data", "tests/ptx")
PROGRAMS = ("decoder_test",)
RESULTS = Path(__file__).with_name("faults.json")
SECONDS = 300  # of a processor, after which a test hangs
ADDRESS_SPACE = (2 << 40) + (8 << 30)  # memory.h reserves the former twice; the latter is more than any test takes


@dataclass(frozen=True)
class Fault:
    path: str  # from csrc/l3
    what: str
    old: str
    new: str
    harmless: str = ""  # why no test can notice it

    @property
    def name(self) -> str:
        return f"{self.path}: {self.what}"

    def made_in(self, text: str) -> str:
        """The text of the file with the fault."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.path}: {self.what}: what is to be replaced is there {count} times")
        if self.new == self.old:
            raise ValueError(f"{self.path}: {self.what}: nothing changes")
        return text.replace(self.old, self.new)


DECODER, LAUNCH, BATCH = "cuda/decoder.cu", "cuda/launch.cu", "cuda/batch.cc"
FAST8, FULL8, FAST16 = "cuda/fast8_kernel.cu", "cuda/full8_kernel.cu", "cuda/fast16_kernel.cu"
GENERAL, STORED, TILES = "cuda/general_kernel.cu", "cuda/stored_kernel.cu", "cuda/team_tiles.h"
THREAD, TEAM, WARP = "cuda/thread_lanes.h", "cuda/team_lanes.h", "cuda/warp_lanes.h"
COPY, PART, ROWS, CONVERTED = "cuda/copy_row.h", "cuda/tile_part.h", "cuda/row_store.h", "cuda/converted_rows.h"
FAST8_TILE, FAST16_TILE = "cuda/fast8_tile.h", "cuda/fast16_tile.h"
GENERAL_TILE, STORED_TILE = "cuda/general_tile.h", "cuda/stored_tile.h"
UNITS, GROUPS, LABELS = "cuda/unit_bitmap.h", "cuda/group_records.h", "cuda/label_rows.h"

FAULTS = (
    # ---- Host code
    Fault(
        DECODER,
        "the copy does not wait for kernels that read the device's side",
        "if (cudaError_t code = cudaStreamWaitEvent(stream, decoded_, 0)) return code;",
        "",
    ),
    Fault(
        DECODER, "the host does not wait for the copy", "return cudaEventSynchronize(copied_);", "return cudaSuccess;"
    ),
    Fault(
        DECODER,
        "the host waits for kernels, not for the copy",
        "return cudaEventSynchronize(copied_);",
        "return cudaEventSynchronize(decoded_);",
        "Kernels run after the copy on the same stream: the host waits longer than it must.",
    ),
    Fault(
        DECODER,
        "growing does not wait for kernels",
        "if (cudaError_t code = cudaEventSynchronize(decoded_)) return code;",
        "",
    ),
    Fault(
        DECODER,
        "growing waits for the copy alone",
        "if (cudaError_t code = cudaEventSynchronize(decoded_)) return code;",
        "if (cudaError_t code = cudaEventSynchronize(copied_)) return code;",
    ),
    Fault(DECODER, "decoded_ is not recorded", "return cudaEventRecord(decoded_, stream);", "return cudaSuccess;"),
    Fault(
        DECODER,
        "decoded_ is recorded on the default stream",
        "return cudaEventRecord(decoded_, stream);",
        "return cudaEventRecord(decoded_, nullptr);",
    ),
    Fault(DECODER, "copied_ is not recorded", "return cudaEventRecord(copied_, stream);", "return cudaSuccess;"),
    Fault(
        DECODER,
        "copied_ is recorded before the copy",
        "if (cudaError_t code = cudaMemcpyAsync(device_",
        "cudaEventRecord(copied_, stream);\n"
        "    return cudaMemcpyAsync(device_, host_, size, cudaMemcpyHostToDevice, stream);\n"
        "    if (cudaError_t code = cudaMemcpyAsync(device_",
    ),
    Fault(
        DECODER,
        "decoded_ is recorded before the kernels",
        "const cudaError_t launched = launch_batch(staging.device(), plan_.layout(), stream);\n"
        "    const cudaError_t marked = staging.mark_decoded(stream);",
        "const cudaError_t marked = staging.mark_decoded(stream);\n"
        "    const cudaError_t launched = launch_batch(staging.device(), plan_.layout(), stream);",
    ),
    Fault(
        DECODER,
        "the slack is not copied",
        "staging.copy(plan_.layout().end, stream)",
        "staging.copy(plan_.layout().end - 9536, stream)",
    ),
    Fault(
        DECODER,
        "the end of the slack is not copied",
        "staging.copy(plan_.layout().end, stream)",
        "staging.copy(plan_.layout().end - 1024, stream)",
        "It is for the vector loads of the CPU's back ends.",
    ),
    Fault(DECODER, "copied the wrong way", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"),
    Fault(DECODER, "kernels read the pinned side", "launch_batch(staging.device()", "launch_batch(staging.host()"),
    Fault(
        DECODER,
        "kernels on the default stream",
        "plan_.layout(), stream);\n    const",
        "plan_.layout(), 0);\n    const",
    ),
    Fault(
        DECODER,
        "a decoder in use is destroyed without a wait",
        "if (decoded_) cudaEventSynchronize(decoded_);",
        "",
    ),
    Fault(DECODER, "pinned memory leaks", "cudaFreeHost(host_);", ""),
    Fault(DECODER, "device memory leaks", "cudaFree(device_);", ""),
    Fault(DECODER, "an event leaks", "if (copied_) cudaEventDestroy(copied_);", ""),
    Fault(DECODER, "another event leaks", "if (decoded_) cudaEventDestroy(decoded_);", ""),
    Fault(DECODER, "a decoder that was not made leaks", "delete *decoder;\n", ""),
    Fault(DECODER, "every batch allocates", "capacity_ = capacity;", ""),
    Fault(
        DECODER,
        "memory grows to the exact size",
        "const size_t capacity = size + size / 4;",
        "const size_t capacity = size;",
        "It grows more often; batches are the same.",
    ),
    Fault(
        DECODER,
        "one place for all batches",
        "next_ = 1 - next_;",
        "",
        "The host waits for the copy of the batch before, which only takes time.",
    ),
    Fault(
        DECODER,
        "memory that could not grow counts as there",
        "host_ = device_ = nullptr;\n    capacity_ = 0;",
        "host_ = device_ = nullptr;",
    ),
    Fault(DECODER, "the last error stays", "cudaGetLastError();  // else", "// else"),
    Fault(
        DECODER,
        "a batch that fails half-way leaves work under way",
        "if (status) cudaStreamSynchronize(stream);",
        "",
    ),
    Fault(
        DECODER,
        "launches that fail go unnoticed",
        'if (launched) return device_failure(error, launched, "launching a kernel");',
        "(void)launched;",
    ),
    Fault(
        DECODER,
        "records that fail go unnoticed",
        'if (marked) return device_failure(error, marked, "recording an event");',
        "(void)marked;",
    ),
    Fault(DECODER, "checksums are not looked at", "options.verify != 0", "false"),
    Fault(DECODER, "a broken image fails its batch", "&& !options.errors) {", ") {"),
    Fault(DECODER, "a broken image is not reported", "*failed = size_t(broken - errors);", ""),
    Fault(
        DECODER,
        "the first image is gathered alone",
        "parallel(options.parallel_context, count, body, &job);",
        "parallel(options.parallel_context, 1, body, &job);",
    ),
    Fault(
        GENERAL,
        "every device is taken for known",
        "return cudaFuncGetAttributes(&attributes, decode_general<uint8_t>);",
        "return (void)attributes, cudaSuccess;",
    ),
    Fault(LAUNCH, "kinds without tiles are launched", "if (count == 0) continue;", ""),
    Fault(
        LAUNCH,
        "launches that fail are followed by others",
        "if (const cudaError_t code = launch(TileKind(kind), buffer, layout, first, count, stream)) return code;",
        "launch(TileKind(kind), buffer, layout, first, count, stream);",
    ),
    Fault(LAUNCH, "16 bits by the kernel for 8", "launch_general(16,", "launch_general(8,"),
    Fault(LAUNCH, "label maps by the kernel for others", "return launch_full8(", "return launch_fast8("),
    Fault(LAUNCH, "16-bit tiles by the kernel for 8 bits", "return launch_fast16(", "return launch_full8("),
    Fault(
        BATCH,
        "converted tiles are taken for others",
        "image.converts() ? TileKind::kFull8x1",
        "false ? TileKind::kFull8x1",
    ),
    Fault(LAUNCH, "the last kind is left out", "kind < kTileKinds; kind++", "kind + 1 < kTileKinds; kind++"),
    Fault(
        LAUNCH, "kinds begin one tile late", "first = layout.kind_begin[kind],", "first = layout.kind_begin[kind] + 1,"
    ),
    Fault(BATCH, "less slack than the furthest read", "+ uint32_t(bytes) + kMaxOverread;", "+ uint32_t(bytes) + 4;"),
    Fault(
        BATCH,
        "bytes of tiles begin unaligned",
        "sizeof(uint32_t)) + 15) / 16 * 16;",
        "sizeof(uint32_t)) + 15) / 16 * 16 + 2;",
    ),
    Fault(
        BATCH,
        "label maps are taken for other tiles",
        "has_label_map ? with_label_map(kind) : kind",
        "kind",
    ),
    # ---- Launch configuration
    Fault(TILES, "the grid is rounded down", "(count + teams - 1) / teams", "(count + teams - 2) / teams"),
    Fault(
        TILES,
        "a block too many",
        "(count + teams - 1) / teams",
        "(count + teams) / teams",
        "Teams beyond the last tile store nothing.",
    ),
    Fault(
        TILES,
        "first and count exchanged",
        "(buffer, layout, first, count);\n  return",
        "(buffer, layout, count, first);\n  return",
    ),
    Fault(TILES, "twice as many threads", "/ teams, threads, 0", "/ teams, 2 * threads, 0"),
    Fault(TILES, "half as many threads", "/ teams, threads, 0", "/ teams, threads / 2, 0"),
    Fault(TILES, "shared memory that nobody has asked for", "threads, 0, stream>>>", "threads, 64, stream>>>"),
    Fault(FAST8, "three channels by the kernel for two", "? decode_fast8<3>", "? decode_fast8<2>"),
    Fault(FULL8, "three channels by the kernel for two", "? decode_full8<3>", "? decode_full8<2>"),
    Fault(FAST16, "three channels by the kernel for two", "? decode_fast16<3>", "? decode_fast16<2>"),
    Fault(GENERAL, "half as many threads", "<<<count, general::kThreads,", "<<<count, general::kThreads / 2,"),
    Fault(GENERAL, "a block too few", "<<<count, general::kThreads,", "<<<count - 1, general::kThreads,"),
    Fault(GENERAL, "all blocks take the first tile", "first + blockIdx.x", "first"),
    Fault(STORED, "half as many threads", "<<<count, kThreads,", "<<<count, kThreads / 2,"),
    Fault(STORED, "a block too few", "<<<count, kThreads,", "<<<count - 1, kThreads,"),
    Fault(STORED, "a team too few", "kTeams);\n}", "kTeams - 1);\n}"),
    # ---- Blocks: barriers and shared memory
    Fault(TILES, "no barrier after the tables", "  __syncthreads();\n", ""),
    Fault(TILES, "a barrier of the warp after the tables", "__syncthreads();", "__syncwarp();"),
    Fault(TILES, "tables without their last entry", "Tables::kThreads)", "Tables::kThreads - 1)"),
    Fault(TILES, "all teams share the memory of the first", "shared[team]);", "shared[0]);"),
    Fault(TILES, "a team beyond the last tile is active", "position < count;", "position <= count;"),
    Fault(TILES, "teams beyond the last tile take what comes", "(active ? position : count - 1)", "position"),
    Fault(TILES, "teams beyond the last tile store", "tile, active, tables", "tile, true, tables"),
    Fault(GENERAL, "no barrier before pixels are written", "planes);\n  __syncthreads();", "planes);"),
    *(
        fault
        for tile in (FAST8_TILE, FAST16_TILE)
        for fault in (
            Fault(tile, "no barrier before records are read", "    Team::sync();\n\n", "\n"),
            Fault(tile, "no barrier before rows are stored", "      Team::sync();\n      store.", "      store."),
            Fault(tile, "no barrier after rows are stored", "shared.rows);\n      Team::sync();", "shared.rows);"),
        )
    ),
    # ---- Warps and teams
    Fault(WARP, "sync() does nothing", "{ __syncwarp(); }", "{}"),
    Fault(
        WARP,
        "sync() is for half a warp",
        "{ __syncwarp(); }",
        "{ __syncwarp(0xFFFFu << (threadIdx.x & 16)); }",
        "Teams of a warp share nothing but the code table, for which the block waits.",
    ),
    Fault(WARP, "any() does not ask the other lanes", "return __any_sync(kAll, condition);", "return condition;"),
    Fault(WARP, "any() asks for all", "__any_sync(kAll, condition)", "__all_sync(kAll, condition)"),
    Fault(WARP, "any() asks half a warp", "__any_sync(kAll,", "__any_sync(0xFFFFu << (threadIdx.x & 16),"),
    Fault(
        WARP,
        "from_left() crosses teams",
        "__shfl_up_sync(kAll, a, 1, kCount)",
        "__shfl_up_sync(kAll, a, 1, 32)",
        "The first sample of a row has no left neighbour: what its lane gets from the left is not used.",
    ),
    Fault(
        WARP,
        "from_right() crosses teams",
        "__shfl_down_sync(kAll, a, 1, kCount)",
        "__shfl_down_sync(kAll, a, 1, 32)",
        "The last sample of a row has no right neighbour: what its lane gets from the right is not used.",
    ),
    Fault(
        WARP,
        "broadcast() crosses teams",
        "uint32_t lane) { return __shfl_sync(kAll, a, int(lane), kCount)",
        "uint32_t lane) { return __shfl_sync(kAll, a, int(lane), 32)",
    ),
    Fault(WARP, "prefix_sum() crosses teams", "8, 0x1000, -1", "8, 0x0, -1"),
    Fault(
        WARP,
        "prefix_sum() begins across teams",
        "1, 0x1000, -1",
        "1, 0x0, -1",
        "In this step the first lane multiplies what it gets by 0.",
    ),
    Fault(WARP, "prefix_sum() with the mask of half a warp", "4, 0x1000, -1", "4, 0x1000, 0xFFFF"),
    Fault(WARP, "prefix_sum() without its last step", "8, 0x1000, -1; @p", "8, 0x1000, -1; @!p"),
    Fault(WARP, "keep() takes another lane's", '"r"(threadIdx.x % 32)', '"r"(threadIdx.x % 32 ^ 1)'),
    Fault(WARP, "prefix_sum() goes on across teams", "2, 0x1000, -1", "2, 0x0, -1"),
    Fault(
        WARP,
        "multiply_add_halves() exchanges a factor and what is added",
        '"r"(a), "r"(b), "r"(c)',
        '"r"(a), "r"(c), "r"(b)',
    ),
    Fault(
        WARP, "load_words_of_bit() begins a word late", "(bytes)[uint64_t(word) + k]", "(bytes)[uint64_t(word) + k + 1]"
    ),
    Fault(WARP, "funnel_shift() to the left", "return __funnelshift_r(low", "return __funnelshift_l(low"),
    Fault(WARP, "funnel_shift_clamped() wraps around", "__funnelshift_rc(", "__funnelshift_r("),
    Fault(WARP, "dot_bytes() leaves out a byte", "__dp4a(a, b, sum)", "__dp4a(a, b & 0x00FFFFFF, sum)"),
    Fault(
        THREAD,
        "load_16() exchanges bytes",
        "bytes[position] | uint32_t(bytes[position + 1]) << 8",
        "bytes[position + 1] | uint32_t(bytes[position]) << 8",
    ),
    Fault(
        WARP,
        "load_words() begins a word late",
        "[uint64_t(word) + k];",
        "[uint64_t(word) + k + 1];",
    ),
    Fault(WARP, "store_words() stores everywhere", "    if (!condition) return;\n", ""),
    Fault(THREAD, "store() stores everywhere", "if (condition) samples[position]", "samples[position]"),
    Fault(TEAM, "masks of the first team", "0xFFFFu << (threadIdx.x & kCount)", "0xFFFFu"),
    Fault(TEAM, "masks of the other team", "(threadIdx.x & kCount)", "(~threadIdx.x & kCount)"),
    Fault(
        TEAM,
        "from_left() waits for the warp",
        "__shfl_up_sync(team(), a, 1, kCount)",
        "__shfl_up_sync(~0u, a, 1, kCount)",
    ),
    Fault(TEAM, "from_right() waits for the warp", "__shfl_down_sync(team()", "__shfl_down_sync(~0u"),
    Fault(
        TEAM,
        "broadcast() waits for the warp",
        "__shfl_sync(team()",
        "__shfl_sync(~0u",
        "Only the concept of lanes asks for it: the general kernel never broadcasts.",
    ),
    Fault(
        TEAM,
        "prefix_sum() leaves lanes out",
        "distance <= index()",
        "distance < index()",
        "Only the concept of lanes asks for it: the general kernel has no running sums.",
    ),
    # ---- Rows
    Fault(COPY, "wide loads where only words are aligned", "begin + head) % kChunk == 0", "begin + head) % 4 == 0"),
    Fault(
        COPY,
        "no wide loads",
        "begin + head) % kChunk == 0",
        "begin + head) % kChunk == kChunk",
        "Words give the same bytes.",
    ),
    Fault(COPY, "a byte too many at the end", "lane + tail < size)", "lane + tail <= size)"),
    Fault(COPY, "a byte too many at the begin", "lane < head)", "lane <= head)"),
    Fault(COPY, "a head longer than the row", "head = to_chunk < size ? to_chunk : size", "head = to_chunk"),
    Fault(COPY, "lanes beyond the row store", "inside = chunk < chunks,", "inside = chunk <= chunks,"),
    Fault(COPY, "lanes beyond the row load", "Team::select(inside, chunk, 0) * kChunk", "chunk * kChunk"),
    Fault(
        COPY,
        "the output counts as aligned",
        "(0 - uint32_t(reinterpret_cast<uintptr_t>(out))) % kChunk",
        "(0 & uint32_t(reinterpret_cast<uintptr_t>(out)))",
    ),
    Fault(PART, "the region's left edge is the tile's", "left = part.left;", "left = 0;"),
    Fault(PART, "regions end with the tile", "width = part.width();", "width = shape.width - left;"),
    Fault(
        PART,
        "regions end a row late",
        "height = part.height();",
        "height = std::min(shape.height - top, part.height() + 1);",
    ),
    Fault(PART, "regions begin where the image does", "(rect.y + top - image.region.y)", "(rect.y + top)"),
    Fault(
        STORED_TILE,
        "rows of the region's width",
        "stored_row = tile.shape.width * pixel_size",
        "stored_row = tile.width * pixel_size",
    ),
    # ---- Tiles
    Fault(ROWS, "16-byte stores to unaligned rows", "active && aligned &&", "active &&"),
    Fault(ROWS, "teams without a tile store chunks", "active && aligned &&", "aligned &&"),
    Fault(ROWS, "rows are stored where chunks were", "wanted = in_rows_ && y", "wanted = y"),
    Fault(ROWS, "a region's rows count as whole groups", "(part_.top | part_.bottom) % kRows == 0 &&", ""),
    Fault(ROWS, "chunks above and below the region are stored", "y - part_.top < part_.height();", "true;"),
    Fault(ROWS, "a chunk too many in a row", "exists = chunk < kRows * chunks;", "exists = chunk <= kRows * chunks;"),
    Fault(ROWS, "rows above the region are stored", "&& y + row >= part_.top", ""),
    Fault(ROWS, "rows below the region are stored", "&& y + row < part_.bottom", ""),
    Fault(ROWS, "chunks begin where the tile does", "kChunk + begin;", "kChunk;"),
    Fault(
        ROWS,
        "columns beyond the region are stored",
        "wanted ? part_.width() * pixel_size : 0",
        "wanted ? kRowSize - part_.left * pixel_size : 0",
    ),
    Fault(
        ROWS,
        "no room behind the last row",
        "bytes[kStoredRows * kRowSize + 64]",
        "bytes[kStoredRows * kRowSize]",
        "copy_byte() reads a byte behind the row on a CPU; the compiler drops that load, which nothing uses.",
    ),
    Fault(ROWS, "teams without a tile convert", "if (!active || bottom <= top) return;", "if (bottom <= top) return;"),
    Fault(ROWS, "converted rows above the region", "top = std::max(part.top, y),", "top = y,"),
    Fault(ROWS, "converted rows below the region", "std::min(part.bottom, y + kStoredRows)", "y + kStoredRows"),
    Fault(
        FAST8_TILE,
        "teams of a warp end on their own",
        "Team::any(Number(y) < shape.height)",
        "Number(y) < shape.height",
    ),
    Fault(FAST8_TILE, "row 0 is no running sum", " | (y == 0 ? kOne & 0xFFFF : 0)", ""),
    Fault(FAST8_TILE, "row 1 is a running sum as row 0 is", "(y == 0 ? kOne & 0xFFFF : 0)", "(y == 0 ? kOne : 0)"),
    Fault(FAST8_TILE, "sums go on above 255", "- totals + base) & kPairMask;", "- totals + base);"),
    Fault(FAST8_TILE, "sums of all rows begin with their base", "Team::index() < is_left", "Team::index() < 1"),
    Fault(FAST8_TILE, "sums begin with their base in every lane", "Team::index() < is_left", "Number(is_left)"),
    Fault(FAST8_TILE, "the base is lost", "- totals + base) &", "- totals) &"),
    Fault(FAST8_TILE, "the base of the lower row is the upper's", " + columns[0] * channel.base_factor", ""),
    Fault(FAST8_TILE, "the neighbour to the left is another channel's", "Beside::kLeftByte + c", "Beside::kLeftByte"),
    Fault(FAST8_TILE, "the neighbour to the right is another channel's", "(4 + c) << 8", "4 << 8"),
    Fault(FAST8_TILE, "a channel alone has no neighbour to the left", "channels == 1 ? 2 : 0", "0"),
    Fault(FAST8_TILE, "the first lane has a left neighbour", "west_of_even(Team::index() == 0)", "west_of_even(0)"),
    Fault(
        FAST8_TILE,
        "the last sample has a right neighbour",
        "return Team::index() * 4 + k == width - 1;",
        "return (void)k, (void)width, 0;",
    ),
    Fault(FAST8_TILE, "records are stored in another order than they are read", ") ^ units.swizzle", ")"),
    Fault(FAST8_TILE, "records of every second row pair", "pair * 2 * kUnitRecordSize", "pair * kUnitRecordSize"),
    Fault(
        FAST8_TILE,
        "all rows of a team are running sums",
        "channel.sums = sums_along_row(predictor)",
        "channel.sums = 1",
    ),
    Fault(
        FAST8_TILE,
        "averages are rounded down",
        "multiply_add(here, weights.here, 3 *",
        "multiply_add(here, weights.here, 1 *",
    ),
    Fault(FAST8_TILE, "the mean of red and green is rounded up", "511 * kHalves", "513 * kHalves"),
    Fault(
        FAST8_TILE,
        "a record's groups count from the row pair's first",
        "group = Team::index() & 7",
        "group = Team::index()",
    ),
    Fault(FAST8_TILE, "bitmaps are passed over", "present = units_present.of_lane();", ""),
    Fault(FAST8_TILE, "lanes of label maps read octets", "word = word & channel.residuals;", "word = word;"),
    Fault(FAST8_TILE, "label maps are taken for octets", "blend(channel.residuals, even[i], labels_even)", "even[i]"),
    Fault(
        FAST8_TILE,
        "the row above of a label map",
        "channel.even = even[1], channel.odd = odd[1];",
        "",
        "Only predictions look at it, and label maps have none.",
    ),
    Fault(FAST8_TILE, "rows that are converted are stored too", "active && !converts)", "active)"),
    Fault(
        FAST16_TILE,
        "teams of a warp end on their own",
        "Team::any(Number(y) < shape.height)",
        "Number(y) < shape.height",
    ),
    Fault(FAST16_TILE, "no edges", "any_cut_ = Team::any(shape.width < L3_TILE);", "any_cut_ = false;"),
    Fault(
        FAST16_TILE,
        "edges are looked for by one team",
        "any_cut_ = Team::any(shape.width < L3_TILE);",
        "any_cut_ = shape.width < L3_TILE;",
        "A team of whole tiles has no edge; blending does not involve other lanes.",
    ),
    Fault(FAST16_TILE, "the last lane has a right neighbour", "if (k == 3 || any_cut_)", "if (any_cut_)"),
    Fault(FAST16_TILE, "the first lane has a left neighbour", "Team::select(Team::index() == 0, above[0], ", "("),
    Fault(FAST16_TILE, "running sums are looked for by one team", "= Team::any(channel.scans);", "= channel.scans;"),
    Fault(FAST16_TILE, "smoothing is looked for by one team", "= Team::any(channel.smooths);", "= channel.smooths;"),
    Fault(FAST16_TILE, "row 0 is no running sum", "pair == 0 ? 1 : channel.scans", "channel.scans"),
    Fault(FAST16_TILE, "wide fields are looked for by one lane", "any_wide_ = Team::any(wide);", "any_wide_ = wide;"),
    Fault(FAST16_TILE, "no wide fields", "any_wide_ = Team::any(wide);", "any_wide_ = false;"),
    Fault(FAST16_TILE, "lanes of label maps read codes", "codes, group, residuals)", "codes, group, 1)"),
    Fault(FAST16_TILE, "lanes of label maps read octets", "positions, group, residuals)", "positions, group, 1)"),
    Fault(FAST16_TILE, "samples are not scaled", " * factor_;", ";"),
    Fault(
        FAST16_TILE, "scaled samples are taken for others", "any_scaled_ = Team::any(factor_ != 1);", "any_scaled_ = 0;"
    ),
    Fault(
        FAST16_TILE,
        "scaled samples are looked for by one team",
        "any_scaled_ = Team::any(factor_ != 1);",
        "any_scaled_ = factor_ != 1;",
        "A team of other samples multiplies them by 1; multiplying does not involve other lanes.",
    ),
    Fault(FAST16_TILE, "samples of more than 16 bits", "+ before[i]) & kSample;", "+ before[i]);"),
    Fault(FAST16_TILE, "rows that are converted are stored too", "active && !image.converts())", "active)"),
    Fault(UNITS, "bits past the last unit count", "low_ = ones<Team>(units);", "low_ = ~0u;"),
    Fault(
        UNITS,
        "the bitmap is looked for by one team",
        "if (!Team::any(here)) return;",
        "if (!here) return;",
        "Loads involve no others.",
    ),
    Fault(UNITS, "units before the lane's from its own on", "low_ & ones<Team>(unit)", "low_ & ones<Team>(unit + 1)"),
    Fault(
        UNITS,
        "row pairs of one unit leave no gaps",
        "if (shape.units_per_row_pair() == 2) return unit;",
        "return unit;",
    ),
    Fault(GROUPS, "octets of groups outside the tile", "& inside[half] & (0u", "& (0u"),
    Fault(GROUPS, "octets of absent units", "& (0u - is_present);", ";"),
    Fault(GROUPS, "the upper half of a palette", "& ~upper)", ")"),
    Fault(GROUPS, "label maps are overwritten", "codes[j], here);", "codes[j]);"),
    Fault(
        LABELS,
        "teams without a label map look up values",
        "0x4440 + k), here_)",
        "0x4440 + k), 1)",
        "They find a part of their own records there, which blending leaves out.",
    ),
    Fault(LABELS, "marks are looked for by one lane", "if (!Team::any(is_marked)) return", "if (!is_marked) return"),
    Fault(LABELS, "teams without a label map have marks", "unit & place.bit & here_;", "unit & place.bit;"),
    Fault(LABELS, "a lane without marks has some", "Team::select(is_marked, record, Records::kNone)", "record"),
    Fault(
        LABELS,
        "the record of no marks is not written",
        "no_marks, is_first);",
        "no_marks, is_first & 0);",
    ),
    Fault(LABELS, "the first candidates are not written", "nothing, is_first & here_);", "nothing, is_first & 0);"),
    Fault(LABELS, "groups count from the row pair's first", " + (unit >> 8), 0)", ", 0)"),
    Fault(
        LABELS,
        "a group's number is one too small",
        "through = Team::keep(bit * 2 - 1)",
        "through = Team::keep(bit - 1)",
    ),
    Fault(
        LABELS,
        "groups are made ready once",
        "while (Team::any(ready_ < number))",
        "if (Team::any(ready_ < number))",
        "A row pair has at most sixteen marked groups, which become ready at once.",
    ),
    Fault(LABELS, "groups are made ready late", "ready_ < number))", "ready_ + 1 < number))"),
    Fault(LABELS, "groups are made ready by one team", "while (Team::any(ready_ < number))", "while (ready_ < number)"),
    Fault(LABELS, "groups that are needed are replaced", "Team::kCount + 1, group", "1, group"),
    Fault(LABELS, "groups behind the last are made ready", "has_room & (group < marked_groups_)", "has_room"),
    Fault(
        LABELS, "no barrier before groups are made ready", "    Team::sync();\n    Team::template", "    Team::template"
    ),
    Fault(LABELS, "no barrier after groups are made ready", "    Team::sync();\n    next_rank_", "    next_rank_"),
    Fault(
        LABELS, "ranks begin at the tile's first again", "next_rank_ = next_rank_ +", "next_rank_ = next_rank_ + 0 *"
    ),
    Fault(LABELS, "ranks of the lower row from the upper's", "upper[2] * rank_bits_", "0"),
    Fault(LABELS, "ranks skip no label", "(upper & mask) | (lower & ~mask)", "(lower & mask) | (lower & ~mask)"),
    Fault(LABELS, "a sample's own label is ranked", "not_less(lower, row_)", "not_less(upper, row_)"),
    Fault(
        LABELS,
        "samples without a mark have candidates",
        ", 0, entry[0]) & entry[1];",
        ", 0, entry[0]);",
        "Nobody chooses them. Only what is behind the last mark can be no rank, and a carry from there meets no mark.",
    ),
    Fault(
        LABELS,
        "values end with those of one team",
        "Team::any(Number(begin) < labels)",
        "begin < labels",
        "Loads and stores involve no others.",
    ),
    Fault(
        LABELS,
        "places are looked for by one team",
        "Team::any(Number(place) < labels)",
        "place < labels",
        "Loads involve no others.",
    ),
    Fault(LABELS, "a value's next one is itself", "loaded, 0, 0x2110", "loaded, 0, 0x1100"),
    Fault(LABELS, "units' groups begin at the lane's", "(through - sum + before[j]) << 8", "(through - sum) << 8"),
    Fault(LABELS, "records of residuals are overwritten", "place * 4, record, Number(here));", "place * 4, record);"),
    Fault(FAST8_TILE, "lanes of label maps find records", "position = position & channel.residuals;", ""),
    Fault(
        FAST8_TILE,
        "a label map alone is taken for one of several channels",
        "if (!state[0].any_residuals) {",
        "if (false) {",
        "The way for several channels gives the same rows, with more instructions.",
    ),
    Fault(
        FAST8_TILE,
        "residuals are taken for a label map alone",
        "if (!state[0].any_residuals) {",
        "if (state[0].any_labels) {",
    ),
    Fault(WARP, "repeat_signs() repeats the lowest byte's", "0xBA98", "0x8888"),
    Fault(
        GENERAL_TILE,
        "channels that are not there are decoded",
        "if (c >= channels || tile",
        "if (tile",
        "There is room for four channels, bodies are held to begin within the tile, and nobody looks at these planes.",
    ),
    Fault(CONVERTED, "both warps write all rows", "y += share.rows", "y += 1"),
    Fault(
        CONVERTED,
        "words before the row are written",
        "first < samples && samples - first >= kInWord",
        "samples - first >= kInWord",
    ),
    Fault(
        CONVERTED,
        "words that begin in the row are whole",
        "first < samples && samples - first >= kInWord",
        "first < samples",
    ),
    Fault(
        CONVERTED,
        "the last word is written in pieces",
        "samples - first >= kInWord;",
        "samples - first > kInWord;",
        "Pieces give the same bytes.",
    ),
    Fault(
        CONVERTED,
        "rows count as aligned to words",
        "reinterpret_cast<uintptr_t>(row) % 4 /",
        "reinterpret_cast<uintptr_t>(row) % 1 /",
    ),
    Fault(CONVERTED, "columns are rounded down", "65536 / channels + 1;", "65536 / channels;"),
)


def hash_of_sources() -> str:
    """Of what faults are made in, and what it includes."""
    folders = [ROOT / "csrc/l3" / name for name in ("cuda", "format", "lockstep")]
    files = sorted(path for folder in folders for path in folder.iterdir() if path.suffix in (".h", ".cc", ".cu"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


class Results:
    """What became of each fault when it was run last: {name: {"sources": hash, "noticed": by what, or nothing}}."""

    def __init__(self) -> None:
        self._sources = hash_of_sources()
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        self._results = {fault.name: known[fault.name] for fault in FAULTS if fault.name in known}

    def add(self, fault: Fault, noticed: str) -> None:
        self._results[fault.name] = {"sources": self._sources, "noticed": noticed}
        temporary = RESULTS.with_suffix(".new")
        temporary.write_text(json.dumps(self._results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(temporary, RESULTS)

    def noticed(self, fault: Fault) -> str | None:
        """None if it has not been run on the present sources."""
        result = self._results.get(fault.name)
        return result["noticed"] if result and result["sources"] == self._sources else None

    def summary(self) -> str:
        present = {fault: noticed for fault in FAULTS if (noticed := self.noticed(fault)) is not None}
        missed = [fault for fault, noticed in present.items() if not noticed]
        harmless = sum(bool(fault.harmless) for fault in missed)
        return (
            f"{len(present)} of {len(FAULTS)} faults have been run on these sources: {len(present) - len(missed)} "
            f"noticed, {harmless} harmless, {len(missed) - harmless} not noticed"
        )


def run(command: list[str], seconds: int = resource.RLIM_INFINITY, address_space: int = resource.RLIM_INFINITY) -> str:
    """The first cause that a command gives for its failure, or nothing. It need not go on after that.

    seconds: that it may take of a processor: those of the clock depend on what else the machine does
    address_space: bytes
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
    resource.prlimit(process.pid, resource.RLIMIT_AS, (address_space, address_space))
    said = []
    for line in process.stdout or ():
        said.append(line.strip())
        if line.startswith("FAILED"):
            process.kill()
    if process.wait() == 0:
        return ""
    causes = [line for line in said if ": " in line and not line.startswith(("ok ", "["))]
    return next(iter(causes), f"ends with {process.returncode}")[:160]


def copy_sources(target: Path) -> None:
    for folder in SOURCES:
        shutil.rmtree(target / folder, ignore_errors=True)
        # Newer than what was built, which may be of a fault.
        shutil.copytree(ROOT / folder, target / folder, copy_function=shutil.copy)


def configure(tests: Path, folder: Path) -> list[str]:
    """The command that prepares a build that is quick: one target, not optimised, and no code compiled twice."""
    command = ["cmake", "-S", str(tests), "-B", str(folder), "-DL3_PTX_TARGETS=90", "-DL3_PTX_OPTIMIZATION=-O0"]
    if ccache := shutil.which("ccache"):
        command.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}")
    return [*command, "-DCMAKE_CUDA_COMPILER_LAUNCHER="]  # which would not leave the PTX


def first_failure(folder: Path, jobs: int) -> str:
    """What the first program says that notices the sources' fault, or nothing."""
    if problem := run(["cmake", "--build", str(folder), "--parallel", str(jobs), "--target", *PROGRAMS]):
        sys.exit(f"cannot be built: {problem}")
    return next(filter(None, (run([str(folder / program)], SECONDS, ADDRESS_SPACE) for program in PROGRAMS)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description="List which faults the tests notice.")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "ptx-faults", help="(default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="to compile with (default: %(default)s)")
    parser.add_argument("--missing", action="store_true", help="only faults not yet run on the present sources")
    parser.add_argument("words", nargs="*", help="of faults to make (default: all)")
    arguments = parser.parse_args()
    results = Results()
    faults = [
        fault
        for fault in FAULTS
        if (not arguments.words or any(word in fault.name for word in arguments.words))
        and not (arguments.missing and results.noticed(fault) is not None)
    ]

    sources, folder = arguments.build / "source", arguments.build / "build"
    copy_sources(sources)
    if problem := run(configure(sources / "tests/ptx", folder)) or first_failure(folder, arguments.jobs):
        sys.exit(f"without any fault: {problem}")
    missed = 0
    for fault in faults:
        path = sources / "csrc/l3" / fault.path
        text = path.read_text(encoding="utf-8")
        start = time.monotonic()
        path.write_text(fault.made_in(text), encoding="utf-8")
        noticed = first_failure(folder, arguments.jobs)
        path.write_text(text, encoding="utf-8")
        results.add(fault, noticed)
        missed += not noticed and not fault.harmless
        verdict = noticed or (f"harmless: {fault.harmless}" if fault.harmless else "NOT NOTICED")
        print(f"{fault.name} ({time.monotonic() - start:.0f} s)\n    {verdict}", flush=True)
    print(results.summary())
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
