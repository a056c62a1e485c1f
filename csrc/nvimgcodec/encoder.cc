// The encoder: an image in host memory to an L3 file.

#include "encoder.h"

#include <cstdio>
#include <cstring>
#include <memory>

#include "l3/l3.h"

namespace dali_l3 {
namespace {

constexpr char kId[] = "l3_encoder";

Encoder *ToEncoder(nvimgcodecEncoder_t handle) { return reinterpret_cast<Encoder *>(handle); }

// What keeps an image from being encoded as it is.
nvimgcodecProcessingStatus_t Check(const nvimgcodecImageInfo_t &info) {
  nvimgcodecProcessingStatus_t status = NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
  const auto &plane = info.plane_info[0];
  if (info.num_planes != 1) status |= NVIMGCODEC_PROCESSING_STATUS_NUM_PLANES_UNSUPPORTED;
  if (plane.num_channels < 1 || plane.num_channels > L3_MAX_CHANNELS)
    status |= NVIMGCODEC_PROCESSING_STATUS_NUM_CHANNELS_UNSUPPORTED;
  if (plane.sample_type != NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8 &&
      plane.sample_type != NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16) {
    status |= NVIMGCODEC_PROCESSING_STATUS_SAMPLE_TYPE_UNSUPPORTED;
  }
  switch (info.sample_format) {
    case NVIMGCODEC_SAMPLEFORMAT_P_Y:
    case NVIMGCODEC_SAMPLEFORMAT_I_Y:
    case NVIMGCODEC_SAMPLEFORMAT_I_YA:
    case NVIMGCODEC_SAMPLEFORMAT_I_RGB:
    case NVIMGCODEC_SAMPLEFORMAT_I_RGBA:
    case NVIMGCODEC_SAMPLEFORMAT_I_UNCHANGED: break;
    default: status |= NVIMGCODEC_PROCESSING_STATUS_SAMPLE_FORMAT_UNSUPPORTED;
  }
  return status;
}

void WriteAll(nvimgcodecIoStreamDesc_t *stream, void *data, size_t size) {
  size_t written = 0;
  if (stream->reserve(stream->instance, size) != NVIMGCODEC_STATUS_SUCCESS ||
      stream->seek(stream->instance, 0, SEEK_SET) != NVIMGCODEC_STATUS_SUCCESS ||
      stream->write(stream->instance, &written, data, size) != NVIMGCODEC_STATUS_SUCCESS || written != size ||
      stream->flush(stream->instance) != NVIMGCODEC_STATUS_SUCCESS) {
    throw std::runtime_error("the encoded file cannot be written");
  }
}

// Throws std::runtime_error with the reason of a failure.
void EncodeTo(nvimgcodecIoStreamDesc_t *stream, const nvimgcodecImageInfo_t &info) {
  if (Check(info) != NVIMGCODEC_PROCESSING_STATUS_SUCCESS ||
      info.buffer_kind != NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST) {
    throw std::runtime_error("images must be interleaved, with 1 to 4 channels of uint8 or uint16");
  }
  const auto &plane = info.plane_info[0];
  l3_image image = {};
  image.data = info.buffer;
  image.row_stride = plane.row_stride;
  image.width = plane.width;
  image.height = plane.height;
  image.channels = plane.num_channels;
  image.bits = plane.sample_type == NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8 ? 8 : 16;
  l3_encode_options options = {};
  options.profile = L3_PROFILE_FAST;
  options.effort = 2;
  options.checksums = 1;

  const size_t capacity = l3_encode_bound(&image, &options);
  const auto file = std::make_unique_for_overwrite<uint8_t[]>(capacity);
  size_t size;
  l3_error error;
  if (l3_encode(&image, &options, file.get(), capacity, &size, &error) != L3_OK)
    throw std::runtime_error(error.message);
  WriteAll(stream, file.get(), size);
}

}  // namespace

Encoder::Encoder(const nvimgcodecFrameworkDesc_t *framework)
    : Component(framework, NVIMGCODEC_STRUCTURE_TYPE_ENCODER_DESC, kId) {
  descriptor_.instance = this;
  descriptor_.backend_kind = NVIMGCODEC_BACKEND_KIND_CPU_ONLY;
  descriptor_.create = Create;
  descriptor_.destroy = Destroy;
  descriptor_.canEncode = CanEncode;
  descriptor_.encode = Encode;
}

// An encoder has no state: the handle is the one object that is registered.
nvimgcodecStatus_t Encoder::Create(void *instance, nvimgcodecEncoder_t *encoder,
                                   const nvimgcodecExecutionParams_t * /*exec_params*/,
                                   const char * /*options*/) noexcept {
  *encoder = static_cast<nvimgcodecEncoder_t>(instance);
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t Encoder::Destroy(nvimgcodecEncoder_t /*encoder*/) noexcept { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecProcessingStatus_t Encoder::CanEncode(nvimgcodecEncoder_t encoder,
                                                const nvimgcodecCodeStreamDesc_t *code_stream,
                                                const nvimgcodecImageDesc_t *image,
                                                const nvimgcodecEncodeParams_t *params, int /*thread_idx*/) noexcept {
  const nvimgcodecProcessingStatus_t failed = NVIMGCODEC_PROCESSING_STATUS_FAIL;
  return Guarded(ToEncoder(encoder)->log_, failed, [&]() -> nvimgcodecProcessingStatus_t {
    if (std::strcmp(ImageInfoOf(code_stream).codec_name, kCodecName) != 0)
      return NVIMGCODEC_PROCESSING_STATUS_CODEC_UNSUPPORTED;
    nvimgcodecProcessingStatus_t status = Check(ImageInfoOf(image));
    if (params->quality_type != NVIMGCODEC_QUALITY_TYPE_DEFAULT &&
        params->quality_type != NVIMGCODEC_QUALITY_TYPE_LOSSLESS) {
      status |= NVIMGCODEC_PROCESSING_STATUS_QUALITY_TYPE_UNSUPPORTED;
    }
    return status;
  });
}

nvimgcodecStatus_t Encoder::Encode(nvimgcodecEncoder_t encoder, const nvimgcodecCodeStreamDesc_t *code_stream,
                                   const nvimgcodecImageDesc_t *image, const nvimgcodecEncodeParams_t * /*params*/,
                                   int /*thread_idx*/) noexcept {
  const auto status = Guarded(ToEncoder(encoder)->log_, NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED, [&] {
    EncodeTo(code_stream->io_stream, ImageInfoOf(image));
    return NVIMGCODEC_STATUS_SUCCESS;
  });
  image->imageReady(image->instance, status == NVIMGCODEC_STATUS_SUCCESS ? NVIMGCODEC_PROCESSING_STATUS_SUCCESS
                                                                         : NVIMGCODEC_PROCESSING_STATUS_FAIL);
  return status;
}

}  // namespace dali_l3
