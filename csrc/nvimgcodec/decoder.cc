// The decoder for the CPU.

#include "decoder.h"

#include "decode_request.h"

namespace dali_l3 {
namespace {

constexpr char kId[] = "l3_decoder";

size_t BytesOf(const nvimgcodecImageInfo_t &image) {
  return image.plane_info[0].row_stride * image.plane_info[0].height;
}

Decoder *ToDecoder(nvimgcodecDecoder_t handle) { return reinterpret_cast<Decoder *>(handle); }

// Decodes into the request's buffer, past the cache if asked to. Throws std::runtime_error with the reason of a
// failure.
void DecodeTo(const nvimgcodecImageInfo_t &image, const nvimgcodecCodeStreamDesc_t *code_stream, bool bypass_cache) {
  const StreamBytes bytes(code_stream->io_stream);
  DecodeRequest request = ParseRequest(image, code_stream, bytes, NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST);
  request.output.bypass_cache = bypass_cache;
  l3_error error;
  if (l3_decode(&request.file, &request.region, &request.output, L3_VERIFY, &error) != L3_OK)
    throw std::runtime_error(error.message);
}

}  // namespace

Decoder::Decoder(const nvimgcodecFrameworkDesc_t *framework)
    : Component(framework, NVIMGCODEC_STRUCTURE_TYPE_DECODER_DESC, kId) {
  descriptor_.instance = this;
  descriptor_.backend_kind = NVIMGCODEC_BACKEND_KIND_CPU_ONLY;
  descriptor_.create = Create;
  descriptor_.destroy = Destroy;
  descriptor_.getMetadata = NoMetadata;
  descriptor_.canDecode = CanDecode;
  descriptor_.decode = Decode;
}

// One decoder serves all: the handle is the one object that is registered.
nvimgcodecStatus_t Decoder::Create(void *instance, nvimgcodecDecoder_t *decoder,
                                   const nvimgcodecExecutionParams_t * /*exec_params*/,
                                   const char * /*options*/) noexcept {
  *decoder = static_cast<nvimgcodecDecoder_t>(instance);
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t Decoder::Destroy(nvimgcodecDecoder_t /*decoder*/) noexcept { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecProcessingStatus_t Decoder::CanDecode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                                const nvimgcodecCodeStreamDesc_t *code_stream,
                                                const nvimgcodecDecodeParams_t * /*params*/,
                                                int /*thread_idx*/) noexcept {
  const nvimgcodecProcessingStatus_t failed = NVIMGCODEC_PROCESSING_STATUS_FAIL;
  return Guarded(ToDecoder(decoder)->log_, failed, [&] {
    const auto info = ImageInfoOf(image);
    ToDecoder(decoder)->batch_size_.Ask(BytesOf(info));
    return CheckRequest(info, code_stream);
  });
}

nvimgcodecStatus_t Decoder::Decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t *image,
                                   const nvimgcodecCodeStreamDesc_t *code_stream,
                                   const nvimgcodecDecodeParams_t * /*params*/, int /*thread_idx*/) noexcept {
  const auto status = Guarded(ToDecoder(decoder)->log_, NVIMGCODEC_STATUS_EXTENSION_BAD_CODE_STREAM, [&] {
    const bool bypass_cache = ToDecoder(decoder)->batch_size_.Decode() >= L3_BYPASS_CACHE_SIZE;
    DecodeTo(ImageInfoOf(image), code_stream, bypass_cache);
    return NVIMGCODEC_STATUS_SUCCESS;
  });
  image->imageReady(image->instance, status == NVIMGCODEC_STATUS_SUCCESS
                                         ? NVIMGCODEC_PROCESSING_STATUS_SUCCESS
                                         : NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED);
  return status;
}

}  // namespace dali_l3
