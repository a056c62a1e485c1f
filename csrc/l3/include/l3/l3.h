/* The L3 codec: lossless images whose tiles decode independently.
 *
 * This is the whole public interface of the core, in plain C. The format itself is specified in docs/format.md.
 *
 * Nothing is allocated that outlives a call, and there is no global state but the choice of CPU back end. All functions
 * may be called from any number of threads, also on the same data, as long as nobody writes to it. A call takes less
 * than 256 KiB of stack.
 *
 * Conventions: sizes and strides are in bytes; images are row-major with interleaved channels (HWC); 16-bit samples are
 * in host order, which is little-endian on every supported machine. Functions return L3_OK or the reason of the
 * failure. If `error` is not NULL, they describe the failure there in one sentence.
 */
#ifndef L3_L3_H_
#define L3_L3_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks every function that the library exports. */
#if defined(__GNUC__)
#define L3_API __attribute__((visibility("default")))
#else
#define L3_API
#endif

/** The version of this header and of everything else in the project, which reads it here. */
#define L3_VERSION_MAJOR 0
#define L3_VERSION_MINOR 2
#define L3_VERSION_PATCH 0

/** The version of the library in use, such as "0.2.0". Never NULL. */
L3_API const char *l3_version(void);

/** Limits of the format, checked before anything is allocated. */
enum {
  L3_MAX_DIMENSION = 1 << 20, /**< pixels, width and height alike */
  L3_MAX_CHANNELS = 4,
  L3_TILE = 64,              /**< width and height of a tile, pixels */
  L3_MAX_METADATA = 1 << 24, /**< bytes of the whole metadata area */
  L3_HEADER_SIZE = 48        /**< bytes of the fixed header of version 1 */
};
/** Bytes of a decoded image: width * height * channels * bytes per sample. */
#define L3_MAX_RAW_SIZE ((uint64_t)1 << 31)

/**
 * Set bypass_cache in l3_output if at least this many bytes are written before anyone reads them: they would be evicted
 * from the cache by then, and lines that are written past the cache need not be read first. The value is about a core's
 * share of a last-level cache; the size that the system reports is wrong on many virtual machines. Outputs of 6 MB were
 * seen to gain as much as outputs of 100 MB.
 */
enum { L3_BYPASS_CACHE_SIZE = 1 << 22 };

/** The result of a function. */
typedef enum l3_status {
  L3_OK = 0,
  L3_ERROR_ARGUMENT = 1,    /**< the caller's argument cannot be used */
  L3_ERROR_SIGNATURE = 2,   /**< not an L3 file */
  L3_ERROR_UNSUPPORTED = 3, /**< an L3 file that this version cannot decode */
  L3_ERROR_LIMIT = 4,       /**< beyond the limits of the format */
  L3_ERROR_TRUNCATED = 5,   /**< the file ends early */
  L3_ERROR_CORRUPT = 6,     /**< the bytes contradict each other */
  L3_ERROR_CHECKSUM = 7,    /**< a CRC-32C does not match */
  L3_ERROR_CAPACITY = 8,    /**< the output buffer is too small, or memory ran out */
  L3_ERROR_DEVICE = 9       /**< a CUDA call failed */
} l3_status;

/** A failure, with a message for people. */
typedef struct l3_error {
  l3_status status;
  char message[256]; /**< NUL-terminated, without the name of the file, which the codec does not know */
} l3_error;

/** A short text for a status, such as "truncated". Never NULL. */
L3_API const char *l3_status_text(l3_status status);

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/** How tiles are coded. */
typedef enum l3_profile {
  L3_PROFILE_RAW = 0,   /**< tiles stored */
  L3_PROFILE_PAPER = 1, /**< the published base-delta scheme, corrected */
  L3_PROFILE_FAST = 2,  /**< the default */
  L3_PROFILE_DENSE = 3  /**< reserved */
} l3_profile;

/** The contents of a header. */
typedef struct l3_info {
  uint32_t width, height; /**< pixels */
  uint32_t channels;      /**< 1..4 */
  uint32_t bits;          /**< per sample: 8 or 16 */
  l3_profile profile;
  uint32_t two_dimensional; /**< 1: the encoded array was (H, W), else (H, W, C) */
  uint32_t has_checksums;   /**< 1: every tile carries a CRC-32C */
  uint32_t prototype;       /**< 1: a file of the published prototype ("LLL."), which has no version */
  uint32_t version_major, version_minor;
  uint32_t tiles_x, tiles_y;
  uint32_t metadata_size; /**< bytes */
  uint32_t payload_size;  /**< bytes of all tiles; l3_peek does not know those of prototype files: 0, and not in
                              file_size */
  uint64_t file_size;     /**< bytes that the whole file must have */
} l3_info;

/** Reads only the header; the first L3_HEADER_SIZE bytes are enough. */
L3_API l3_status l3_peek(const void *data, size_t size, l3_info *info, l3_error *error);

/**
 * A parsed file: views into the caller's bytes, which must stay alive and unchanged. Plain data, copied freely,
 * nothing to release.
 */
typedef struct l3_file {
  l3_info info;
  const uint8_t *data;
  size_t size;
  const uint8_t *offsets;   /**< uint32[tiles + 1], from the payload's start, proven ascending and in range */
  const uint8_t *checksums; /**< uint32[tiles], or NULL */
  const uint8_t *metadata;  /**< info.metadata_size bytes */
  const uint8_t *payload;   /**< info.payload_size bytes */
} l3_file;

/** Validates header, tables and their checksums. Tile contents are validated as they are decoded. */
L3_API l3_status l3_open(const void *data, size_t size, l3_file *file, l3_error *error);

/** An entry of metadata. */
typedef struct l3_metadata {
  const char *key; /**< UTF-8, key_size bytes, not NUL-terminated */
  size_t key_size;
  const void *value;
  size_t value_size;
} l3_metadata;

/**
 * Yields the metadata entries one by one: start with ``*cursor = 0``; entry->key is NULL after the last. The first call
 * validates the whole area: its CRC-32C, that the entries fill it, and that their keys are UTF-8 and differ. A value
 * may be empty.
 */
L3_API l3_status l3_next_metadata(const l3_file *file, size_t *cursor, l3_metadata *entry, l3_error *error);

/**
 * Checks that a parsed file is undamaged, without decoding it: the checksums of its metadata and of all tiles, and the
 * structure of both. l3_decode can decode every file that passes. (Prototype files have no checksums and are decoded.)
 * The bytes after the payload, which no checksum covers, are not checked.
 */
L3_API l3_status l3_verify(const l3_file *file, l3_error *error);

/* ---- Decoding ---------------------------------------------------------------------------------------------------- */

/** A region of an image. */
typedef struct l3_rect {
  uint32_t x, y, width, height; /**< pixels */
} l3_rect;

/** Channels of an output. */
typedef enum l3_color {
  L3_COLOR_NATIVE = 0, /**< the channels of the file, unchanged */
  L3_COLOR_RGB = 1,    /**< 3 channels: gray is repeated, alpha is dropped */
  L3_COLOR_BGR = 2,
  L3_COLOR_GRAY = 3, /**< 1 channel: luma of RGB, alpha is dropped */
  L3_COLOR_YCBCR = 4 /**< 3 channels: ITU-R BT.601 with headroom */
} l3_color;

/** Samples of an output: integers are scaled by the ratio of the types' largest values, floats to 0..1. */
typedef enum l3_sample {
  L3_SAMPLE_NATIVE = 0, /**< the depth of the file */
  L3_SAMPLE_U8 = 1,
  L3_SAMPLE_I8 = 2,
  L3_SAMPLE_U16 = 3,
  L3_SAMPLE_I16 = 4,
  L3_SAMPLE_U32 = 5,
  L3_SAMPLE_I32 = 6,
  L3_SAMPLE_F32 = 7,
  L3_SAMPLE_F16 = 8 /**< IEEE 754 binary16: what L3_SAMPLE_F32 gives, rounded to the nearest, ties to even */
} l3_sample;

/** The memory to decode to, and the conversion of the pixels. */
typedef struct l3_output {
  void *data;
  size_t row_stride; /**< bytes from one row to the next, at least a row's size */
  l3_color color;
  l3_sample sample;
  uint32_t bypass_cache; /**< 1: non-temporal stores, where alignment allows; see L3_BYPASS_CACHE_SIZE */
} l3_output;

/**
 * Option bits: check the CRC-32C of each tile that is decoded, if the file has checksums. A wrong one is the error,
 * whatever else is wrong with the tile.
 */
enum {
  L3_VERIFY = 1,
  L3_VERIFY_UNLESS_STORED = 2 /**< for all profiles but `raw`, whose pixels take as long to sum as to copy; for the
                                 others summing costs up to a tenth of decoding */
};

/** Channels of the output in `color`, and bytes of a sample in `sample`, for this file. */
L3_API uint32_t l3_output_channels(const l3_info *info, l3_color color);
L3_API uint32_t l3_output_sample_size(const l3_info *info, l3_sample sample);

/**
 * Decodes `roi` (NULL: the whole image), whose top left pixel lands at output->data. Only the tiles that `roi` touches
 * are read. After an error, the contents of the output are undefined: it may hold pixels of a damaged tile.
 */
L3_API l3_status l3_decode(const l3_file *file, const l3_rect *roi, const l3_output *output, uint32_t options,
                           l3_error *error);

/**
 * The same in pieces, for callers with their own threads: tiles [first, first + count) of the l3_region_tile_count()
 * tiles that `roi` touches, in row-major order. Pieces write disjoint pixels and may run concurrently. `roi` must lie
 * inside the image.
 */
L3_API uint32_t l3_region_tile_count(const l3_file *file, const l3_rect *roi);
L3_API l3_status l3_decode_tiles(const l3_file *file, const l3_rect *roi, const l3_output *output, uint32_t options,
                                 uint32_t first, uint32_t count, l3_error *error);

/** A tile, by its number in row-major order of the whole image, and a region that touches it, by its number. */
typedef struct l3_region_tile {
  uint32_t tile, region;
} l3_region_tile;

/**
 * Lists the tiles that each of several regions touches, in the order of the image: tiles that several share stand there
 * several times, side by side. Returns how many entries there are; `tiles` may be NULL, to learn only that. The regions
 * must lie inside the image.
 */
L3_API size_t l3_list_region_tiles(const l3_file *file, const l3_rect *regions, size_t count, l3_region_tile *tiles);

/**
 * Decodes entries of such a list, of which it may be given any part: a tile once for all its entries that stand side by
 * side. The top left pixel of region i lands at output->data + i * region_stride. Different entries write disjoint
 * memory, if regions do, and may be decoded concurrently.
 */
L3_API l3_status l3_decode_region_tiles(const l3_file *file, const l3_rect *regions, const l3_output *output,
                                        size_t region_stride, uint32_t options, const l3_region_tile *tiles,
                                        size_t count, l3_error *error);

/* ---- Encoding ---------------------------------------------------------------------------------------------------- */

/** Pixels to encode. */
typedef struct l3_image {
  const void *data;
  size_t row_stride; /**< bytes */
  uint32_t width, height, channels, bits;
  uint32_t two_dimensional; /**< remembered in the file; needs channels == 1 */
} l3_image;

/** How to encode. */
typedef struct l3_encode_options {
  l3_profile profile;
  uint32_t effort;    /**< 1 quick, 2 default, 3 smallest; only `fast` distinguishes them */
  uint32_t checksums; /**< 1: store a CRC-32C for every tile */
  const l3_metadata *metadata;
  size_t metadata_count;
} l3_encode_options;

/** Bytes that are enough for any image of this shape; 0 if image or options are invalid (l3_encode says why). */
L3_API size_t l3_encode_bound(const l3_image *image, const l3_encode_options *options);

/**
 * Writes the file to out[0..capacity) and its size to ``*written``. L3_ERROR_ARGUMENT: metadata keys that are not UTF-8
 * of 1 to 255 bytes, or that repeat, among others.
 */
L3_API l3_status l3_encode(const l3_image *image, const l3_encode_options *options, void *out, size_t capacity,
                           size_t *written, l3_error *error);

/* ---- CPU back ends ----------------------------------------------------------------------------------------------- */

/**
 * The back end in use: "avx512", "avx2" or "portable". The first call chooses the best one that the CPU can run. The
 * environment variable DALI_L3_BACKEND forces another; if this CPU cannot run it, decoding fails, and this returns
 * "none".
 */
L3_API const char *l3_backend(void);

/**
 * Chooses a back end by name for the whole process. L3_ERROR_ARGUMENT: unknown name; L3_ERROR_UNSUPPORTED: this CPU
 * cannot run it.
 */
L3_API l3_status l3_set_backend(const char *name);

#ifdef __cplusplus
}
#endif
#endif /* L3_L3_H_ */
