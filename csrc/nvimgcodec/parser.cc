// The parser reads the header alone.
//
// It accepts whatever starts like an L3 file. A status is all that a parser can report, and DALI passes it on without
// the file's name, whereas a failure of the decoder is reported with it. So a file whose header is broken is described
// as one pixel, and the decoder refuses it.

#include "parser.h"

#include <cstring>

#include "l3/l3.h"

namespace dali_l3 {
namespace {

constexpr char kId[] = "l3_parser";

Parser *ToParser(nvimgcodecParser_t handle) { return reinterpret_cast<Parser *>(handle); }

void FillPlane(const l3_info &info, nvimgcodecImagePlaneInfo_t *plane) {
  *plane = Tagged<nvimgcodecImagePlaneInfo_t>(NVIMGCODEC_STRUCTURE_TYPE_IMAGE_PLANE_INFO);
  plane->width = info.width;
  plane->height = info.height;
  plane->num_channels = info.channels;
  plane->sample_type = info.bits == 8 ? NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8 : NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16;
  plane->precision = static_cast<uint8_t>(info.bits);
  plane->row_stride = size_t{info.width} * info.channels * (info.bits / 8);
}

nvimgcodecSampleFormat_t SampleFormat(uint32_t channels) {
  switch (channels) {
    case 1: return NVIMGCODEC_SAMPLEFORMAT_P_Y;
    case 2: return NVIMGCODEC_SAMPLEFORMAT_I_YA;
    case 3: return NVIMGCODEC_SAMPLEFORMAT_I_RGB;
    default: return NVIMGCODEC_SAMPLEFORMAT_I_RGBA;
  }
}

}  // namespace

Parser::Parser(const nvimgcodecFrameworkDesc_t *framework)
    : Component(framework, NVIMGCODEC_STRUCTURE_TYPE_PARSER_DESC, kId) {
  descriptor_.instance = this;
  descriptor_.canParse = CanParse;
  descriptor_.create = Create;
  descriptor_.destroy = Destroy;
  descriptor_.getCodeStreamInfo = GetCodeStreamInfo;
  descriptor_.getImageInfo = GetImageInfo;
}

nvimgcodecStatus_t Parser::CanParse(void *instance, int *result, nvimgcodecCodeStreamDesc_t *code_stream) noexcept {
  return Guarded(static_cast<Parser *>(instance)->log_, NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR, [&] {
    const StreamBytes start(code_stream->io_stream, L3_HEADER_SIZE);
    l3_info info;
    *result = l3_peek(start.data(), start.size(), &info, nullptr) != L3_ERROR_SIGNATURE;
    return NVIMGCODEC_STATUS_SUCCESS;
  });
}

// A parser has no state: the handle is the one object that is registered.
nvimgcodecStatus_t Parser::Create(void *instance, nvimgcodecParser_t *parser) noexcept {
  *parser = static_cast<nvimgcodecParser_t>(instance);
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t Parser::Destroy(nvimgcodecParser_t /*parser*/) noexcept { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecStatus_t Parser::GetCodeStreamInfo(nvimgcodecParser_t parser, nvimgcodecCodeStreamInfo_t *info,
                                             nvimgcodecCodeStreamDesc_t *code_stream) noexcept {
  return Guarded(ToParser(parser)->log_, NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR, [&] {
    std::strcpy(info->codec_name, kCodecName);
    info->num_images = 1;
    return code_stream->io_stream->size(code_stream->io_stream->instance, &info->size);
  });
}

nvimgcodecStatus_t Parser::GetImageInfo(nvimgcodecParser_t parser, nvimgcodecImageInfo_t *info,
                                        nvimgcodecCodeStreamDesc_t *code_stream) noexcept {
  const Log &log = ToParser(parser)->log_;
  return Guarded(log, NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR, [&] {
    const StreamBytes start(code_stream->io_stream, L3_HEADER_SIZE);
    l3_info header;
    l3_error error;
    if (l3_peek(start.data(), start.size(), &header, &error) != L3_OK) {
      log.Error(error.message);
      header = {};
      header.width = header.height = header.channels = 1;
      header.bits = 8;
    }
    // info->struct_next is the caller's and stays.
    std::strcpy(info->codec_name, kCodecName);
    info->color_spec = header.channels < 3 ? NVIMGCODEC_COLORSPEC_GRAY : NVIMGCODEC_COLORSPEC_SRGB;
    // Images are handed out to threads in the order of their subsampling, those without any first, and then by size.
    // L3 is to be last: the quicker the last images, the less a batch's threads wait for each other.
    info->chroma_subsampling = NVIMGCODEC_SAMPLING_UNSUPPORTED;
    info->sample_format = SampleFormat(header.channels);
    info->orientation = Tagged<nvimgcodecOrientation_t>(NVIMGCODEC_STRUCTURE_TYPE_ORIENTATION);
    info->num_planes = 1;
    FillPlane(header, &info->plane_info[0]);
    return NVIMGCODEC_STATUS_SUCCESS;
  });
}

}  // namespace dali_l3
