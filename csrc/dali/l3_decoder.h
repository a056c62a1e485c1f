// The operator decoders.l3 for the CPU: an adapter between DALI's batches and the codec core.
#pragma once

#include <mutex>
#include <vector>

#include "dali/pipeline/operator/checkpointing/stateless_operator.h"
#include "encoded_batch.h"
#include "l3/l3.h"

namespace dali_l3 {

class L3Decoder : public dali::StatelessOperator<dali::CPUBackend> {
 public:
  explicit L3Decoder(const dali::OpSpec &spec);

 protected:
  bool SetupImpl(std::vector<dali::OutputDesc> &outputs, const dali::Workspace &ws) override;
  void RunImpl(dali::Workspace &ws) override;

 private:
  // A run of tiles of one sample: the unit of work that threads take.
  struct Piece {
    int sample;
    uint32_t first_tile, tile_count;
  };

  void DecodePiece(const Piece &piece, dali::TensorList<dali::CPUBackend> &output, bool bypass_cache);

  EncodedBatch batch_;

  // Of the current batch; members, so that their memory is not allocated anew for each.
  std::vector<Piece> pieces_;
  std::mutex failure_mutex_;
  int failed_sample_ = -1;  // the first one in the batch
  l3_error failure_ = {};
};

}  // namespace dali_l3
