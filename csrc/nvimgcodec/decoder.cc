// The decoder: translates a request of the framework into one of the codec core.

#include "decoder.h"

#include <cstring>

#include "l3/l3.h"

namespace dali_l3 {
namespace {

constexpr char kId[] = "l3_decoder";

// Images larger than this are written past the cache: in a batch of them the first ones would be evicted before anyone reads them.
constexpr size_t kBypassCacheSize = size_t{1} << 20;

Decoder *ToDecoder(nvimgcodecDecoder_t handle) { return reinterpret_cast<Decoder *>(handle); }

// The color that a request asks for, given the channels of the file. False: it cannot be decoded to.
bool ToColor(const nvimgcodecImageInfo_t &request, uint32_t channels, l3_color *color) {
  switch (request.sample_format) {
    case NVIMGCODEC_SAMPLEFORMAT_I_RGB: *color = L3_COLOR_RGB; return true;
    case NVIMGCODEC_SAMPLEFORMAT_I_BGR: *color = L3_COLOR_BGR; return true;
    case NVIMGCODEC_SAMPLEFORMAT_P_Y:
    case NVIMGCODEC_SAMPLEFORMAT_I_Y: *color = L3_COLOR_GRAY; return true;
    case NVIMGCODEC_SAMPLEFORMAT_I_YA:
    case NVIMGCODEC_SAMPLEFORMAT_I_RGBA:
    case NVIMGCODEC_SAMPLEFORMAT_I_UNCHANGED: *color = L3_COLOR_NATIVE; return request.plane_info[0].num_channels == channels;
    default: return false;
  }
}

bool ToSample(nvimgcodecSampleDataType_t type, l3_sample *sample) {
  switch (type) {
    case NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8: *sample = L3_SAMPLE_U8; return true;
    case NVIMGCODEC_SAMPLE_DATA_TYPE_INT8: *sample = L3_SAMPLE_I8; return true;
    case NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16: *sample = L3_SAMPLE_U16; return true;
    case NVIMGCODEC_SAMPLE_DATA_TYPE_INT16: *sample = L3_SAMPLE_I16; return true;
    case NVIMGCODEC_SAMPLE_DATA_TYPE_UINT32: *sample = L3_SAMPLE_U32; return true;
    case NVIMGCODEC_SAMPLE_DATA_TYPE_INT32: *sample = L3_SAMPLE_I32; return true;
    case NVIMGCODEC_SAMPLE_DATA_TYPE_FLOAT32: *sample = L3_SAMPLE_F32; return true;
    default: return false;
  }
}

// The region of interest, or the whole image. The codec core checks that it lies inside.
l3_rect Region(const nvimgcodecCodeStreamDesc_t *code_stream, const l3_info &info) {
  auto stream_info = Tagged<nvimgcodecCodeStreamInfo_t>(NVIMGCODEC_STRUCTURE_TYPE_CODE_STREAM_INFO);
  if (code_stream->getCodeStreamInfo(code_stream->instance, &stream_info) != NVIMGCODEC_STATUS_SUCCESS) {
    throw std::runtime_error("the view of the code stream is not available");
  }
  const auto *view = stream_info.code_stream_view;
  if (!view || view->region.ndim == 0) return {0, 0, info.width, info.height};
  const auto &region = view->region;
  if (region.ndim != 2) throw std::runtime_error("a region must have two dimensions");
  const auto y = static_cast<uint32_t>(region.start[0]), x = static_cast<uint32_t>(region.start[1]);
  return {x, y, static_cast<uint32_t>(region.end[1]) - x, static_cast<uint32_t>(region.end[0]) - y};
}

// Decodes into the request's buffer. Throws std::runtime_error with the reason of a failure.
void DecodeTo(const nvimgcodecImageInfo_t &request, const nvimgcodecCodeStreamDesc_t *code_stream) {
  const StreamBytes bytes(code_stream->io_stream);
  l3_stream stream;
  l3_error error;
  if (l3_open(bytes.data(), bytes.size(), &stream, &error) != L3_OK) throw std::runtime_error(error.message);

  const auto &plane = request.plane_info[0];
  const l3_rect region = Region(code_stream, stream.info);
  l3_output output = {};
  output.data = request.buffer;
  output.row_stride = plane.row_stride;
  if (request.num_planes != 1 || request.buffer_kind != NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST ||
      !ToColor(request, stream.info.channels, &output.color) || !ToSample(plane.sample_type, &output.sample) ||
      plane.num_channels != l3_output_channels(&stream.info, output.color) || plane.width != region.width ||
      plane.height != region.height) {
    throw std::runtime_error("the requested image does not fit the file");
  }
  output.bypass_cache = plane.row_stride * plane.height > kBypassCacheSize;
  if (l3_decode(&stream, &region, &output, L3_VERIFY, &error) != L3_OK) throw std::runtime_error(error.message);
}

}  // namespace

Decoder::Decoder(const nvimgcodecFrameworkDesc_t *framework)
    : log_(framework, kId),
      descriptor_{.struct_type = NVIMGCODEC_STRUCTURE_TYPE_DECODER_DESC,
                  .struct_size = sizeof(nvimgcodecDecoderDesc_t),
                  .struct_next = nullptr,
                  .instance = this,
                  .id = kId,
                  .codec = kCodecName,
                  .backend_kind = NVIMGCODEC_BACKEND_KIND_CPU_ONLY,
                  .create = Create,
                  .destroy = Destroy,
                  .getMetadata = GetMetadata,
                  .canDecode = CanDecode,
                  .decode = Decode,
                  .decodeBatch = nullptr,
                  .getMiniBatchSize = nullptr} {}

// A decoder has no state: the handle is the one object that is registered.
nvimgcodecStatus_t Decoder::Create(void *instance, nvimgcodecDecoder_t *decoder, const nvimgcodecExecutionParams_t * /*exec_params*/,
                                   const char * /*options*/) noexcept {
  *decoder = static_cast<nvimgcodecDecoder_t>(instance);
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t Decoder::Destroy(nvimgcodecDecoder_t /*decoder*/) noexcept { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecStatus_t Decoder::GetMetadata(nvimgcodecDecoder_t /*decoder*/, const nvimgcodecCodeStreamDesc_t * /*code_stream*/,
                                        nvimgcodecMetadata_t ** /*metadata*/, int * /*metadata_count*/) noexcept {
  return NVIMGCODEC_STATUS_IMPLEMENTATION_UNSUPPORTED;
}

nvimgcodecProcessingStatus_t Decoder::CanDecode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                                const nvimgcodecCodeStreamDesc_t *code_stream, const nvimgcodecDecodeParams_t * /*params*/,
                                                int /*thread_idx*/) noexcept {
  const nvimgcodecProcessingStatus_t failed = NVIMGCODEC_PROCESSING_STATUS_FAIL;
  return Guarded(ToDecoder(decoder)->log_, failed, [&]() -> nvimgcodecProcessingStatus_t {
    const auto file = ImageInfoOf(code_stream), request = ImageInfoOf(image);
    if (std::strcmp(file.codec_name, kCodecName) != 0) return NVIMGCODEC_PROCESSING_STATUS_CODEC_UNSUPPORTED;
    nvimgcodecProcessingStatus_t status = NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
    l3_color color;
    l3_sample sample;
    if (request.num_planes != 1) status |= NVIMGCODEC_PROCESSING_STATUS_NUM_PLANES_UNSUPPORTED;
    if (!ToColor(request, file.plane_info[0].num_channels, &color)) status |= NVIMGCODEC_PROCESSING_STATUS_SAMPLE_FORMAT_UNSUPPORTED;
    if (!ToSample(request.plane_info[0].sample_type, &sample)) status |= NVIMGCODEC_PROCESSING_STATUS_SAMPLE_TYPE_UNSUPPORTED;
    return status;
  });
}

nvimgcodecStatus_t Decoder::Decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                   const nvimgcodecCodeStreamDesc_t *code_stream, const nvimgcodecDecodeParams_t * /*params*/,
                                   int /*thread_idx*/) noexcept {
  const auto status = Guarded(ToDecoder(decoder)->log_, NVIMGCODEC_STATUS_EXTENSION_BAD_CODE_STREAM, [&] {
    DecodeTo(ImageInfoOf(image), code_stream);
    return NVIMGCODEC_STATUS_SUCCESS;
  });
  image->imageReady(image->instance, status == NVIMGCODEC_STATUS_SUCCESS ? NVIMGCODEC_PROCESSING_STATUS_SUCCESS
                                                                         : NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED);
  return status;
}

}  // namespace dali_l3
