// What the parser, the decoders and the encoder of the extension share.
#pragma once

#include <nvimgcodec.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <vector>

namespace dali_l3 {

inline constexpr char kCodecName[] = "l3";

// Reports to the framework, which prints errors unless it was told not to.
class Log {
 public:
  Log(const nvimgcodecFrameworkDesc_t *framework, const char *codec_id) : framework_(framework), codec_id_(codec_id) {}
  void Error(const char *message) const noexcept;

 private:
  const nvimgcodecFrameworkDesc_t *framework_;
  const char *codec_id_;
};

// Runs `body`, which returns a status. Exceptions must not cross into the framework: they are logged, and
// `on_exception` is returned.
template <typename Status, typename Body>
Status Guarded(const Log &log, Status on_exception, Body &&body) noexcept {
  try {
    return body();
  } catch (const std::exception &e) {
    log.Error(e.what());
  } catch (...) {
    log.Error("unknown exception");
  }
  return on_exception;
}

// The first bytes of a code stream or all of them: mapped where the stream can be mapped, else a copy. Throws
// std::runtime_error when the stream cannot be read.
class StreamBytes {
 public:
  explicit StreamBytes(nvimgcodecIoStreamDesc_t *stream, size_t at_most = SIZE_MAX);
  ~StreamBytes();
  StreamBytes(const StreamBytes &) = delete;
  StreamBytes &operator=(const StreamBytes &) = delete;

  const void *data() const { return mapped_ ? mapped_ : copy_.data(); }
  size_t size() const { return size_; }

 private:
  nvimgcodecIoStreamDesc_t *stream_;
  size_t size_ = 0;
  void *mapped_ = nullptr;
  std::vector<uint8_t> copy_;
};

// An empty structure, tagged as the framework expects it.
template <typename T>
T Tagged(nvimgcodecStructureType_t type) {
  T structure = {};
  structure.struct_type = type;
  structure.struct_size = sizeof(T);
  return structure;
}

// A parser, decoder or encoder, which the framework knows by its descriptor. That points to the component, which stays
// where it is while it is registered.
template <typename Descriptor>
class Component {
 public:
  Component(const Component &) = delete;
  Component &operator=(const Component &) = delete;
  const Descriptor *descriptor() const { return &descriptor_; }

 protected:
  // Leaves `instance` and the functions of the descriptor to the derived class.
  Component(const nvimgcodecFrameworkDesc_t *framework, nvimgcodecStructureType_t type, const char *id)
      : log_(framework, id), descriptor_(Tagged<Descriptor>(type)) {
    descriptor_.id = id;
    descriptor_.codec = kCodecName;
  }
  ~Component() = default;

  Log log_;
  Descriptor descriptor_;
};

// The getMetadata of decoders: metadata are not offered to the framework.
inline nvimgcodecStatus_t NoMetadata(nvimgcodecDecoder_t /*decoder*/,
                                     const nvimgcodecCodeStreamDesc_t * /*code_stream*/,
                                     nvimgcodecMetadata_t ** /*metadata*/, int * /*metadata_count*/) noexcept {
  return NVIMGCODEC_STATUS_IMPLEMENTATION_UNSUPPORTED;
}

// What an image or a code stream says of itself. Throws std::runtime_error when it does not.
template <typename Description>
nvimgcodecImageInfo_t ImageInfoOf(const Description *description) {
  auto info = Tagged<nvimgcodecImageInfo_t>(NVIMGCODEC_STRUCTURE_TYPE_IMAGE_INFO);
  if (description->getImageInfo(description->instance, &info) != NVIMGCODEC_STATUS_SUCCESS) {
    throw std::runtime_error("the image information is not available");
  }
  return info;
}

}  // namespace dali_l3
