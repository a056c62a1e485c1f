// Translation and validation of decode requests.

#include "decode_request.h"

#include <cstring>

namespace dali_l3 {
namespace {

// The color that a request asks for, given the channels of the file. False: it cannot be decoded to.
bool ToColor(const nvimgcodecImageInfo_t &request, uint32_t channels, l3_color *color) {
  switch (request.sample_format) {
    case NVIMGCODEC_SAMPLEFORMAT_I_RGB: *color = L3_COLOR_RGB; return true;
    case NVIMGCODEC_SAMPLEFORMAT_I_BGR: *color = L3_COLOR_BGR; return true;
    case NVIMGCODEC_SAMPLEFORMAT_P_Y:
    case NVIMGCODEC_SAMPLEFORMAT_I_Y: *color = L3_COLOR_GRAY; return true;
    case NVIMGCODEC_SAMPLEFORMAT_I_YA:
    case NVIMGCODEC_SAMPLEFORMAT_I_RGBA:
    case NVIMGCODEC_SAMPLEFORMAT_I_UNCHANGED:
      *color = L3_COLOR_NATIVE;
      return request.plane_info[0].num_channels == channels;
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

}  // namespace

nvimgcodecProcessingStatus_t CheckRequest(const nvimgcodecImageInfo_t &request,
                                          const nvimgcodecCodeStreamDesc_t *code_stream) {
  const auto file = ImageInfoOf(code_stream);
  if (std::strcmp(file.codec_name, kCodecName) != 0) return NVIMGCODEC_PROCESSING_STATUS_CODEC_UNSUPPORTED;
  nvimgcodecProcessingStatus_t status = NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
  l3_color color;
  l3_sample sample;
  if (request.num_planes != 1) status |= NVIMGCODEC_PROCESSING_STATUS_NUM_PLANES_UNSUPPORTED;
  if (!ToColor(request, file.plane_info[0].num_channels, &color))
    status |= NVIMGCODEC_PROCESSING_STATUS_SAMPLE_FORMAT_UNSUPPORTED;
  if (!ToSample(request.plane_info[0].sample_type, &sample))
    status |= NVIMGCODEC_PROCESSING_STATUS_SAMPLE_TYPE_UNSUPPORTED;
  return status;
}

DecodeRequest ParseRequest(const nvimgcodecImageInfo_t &image, const nvimgcodecCodeStreamDesc_t *code_stream,
                           const StreamBytes &bytes, nvimgcodecImageBufferKind_t kind) {
  DecodeRequest request = {};
  l3_error error;
  if (l3_open(bytes.data(), bytes.size(), &request.file, &error) != L3_OK) throw std::runtime_error(error.message);

  const auto &info = request.file.info;
  const auto &plane = image.plane_info[0];
  auto &output = request.output;
  request.region = Region(code_stream, info);
  output.data = image.buffer;
  output.row_stride = plane.row_stride;
  if (image.num_planes != 1 || image.buffer_kind != kind || !ToColor(image, info.channels, &output.color) ||
      !ToSample(plane.sample_type, &output.sample) || plane.num_channels != l3_output_channels(&info, output.color) ||
      plane.width != request.region.width || plane.height != request.region.height) {
    throw std::runtime_error("the requested image does not fit the file");
  }
  return request;
}

}  // namespace dali_l3
