// Logging and stream access.

#include "common.h"

#include <algorithm>
#include <cstdio>

namespace dali_l3 {

void Log::Error(const char *message) const noexcept {
  auto data = Tagged<nvimgcodecDebugMessageData_t>(NVIMGCODEC_STRUCTURE_TYPE_DEBUG_MESSAGE_DATA);
  data.message = message;
  data.codec = kCodecName;
  data.codec_id = codec_id_;
  framework_->log(framework_->instance, NVIMGCODEC_DEBUG_MESSAGE_SEVERITY_ERROR,
                  NVIMGCODEC_DEBUG_MESSAGE_CATEGORY_GENERAL, &data);
}

StreamBytes::StreamBytes(nvimgcodecIoStreamDesc_t *stream, size_t at_most) : stream_(stream) {
  if (stream_->size(stream_->instance, &size_) != NVIMGCODEC_STATUS_SUCCESS)
    throw std::runtime_error("the size of the stream is unknown");
  size_ = std::min(size_, at_most);
  if (size_ == 0) return;
  if (stream_->map(stream_->instance, &mapped_, 0, size_) == NVIMGCODEC_STATUS_SUCCESS && mapped_) return;
  mapped_ = nullptr;
  copy_.resize(size_);
  size_t read = 0;
  if (stream_->seek(stream_->instance, 0, SEEK_SET) != NVIMGCODEC_STATUS_SUCCESS ||
      stream_->read(stream_->instance, &read, copy_.data(), size_) != NVIMGCODEC_STATUS_SUCCESS || read != size_) {
    throw std::runtime_error("the stream cannot be read");
  }
}

StreamBytes::~StreamBytes() {
  if (mapped_) stream_->unmap(stream_->instance, mapped_, size_);
}

}  // namespace dali_l3
