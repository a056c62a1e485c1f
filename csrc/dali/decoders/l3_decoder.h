// The operator decoders.l3 for the CPU: an adapter between DALI's batches and the codec core.
#pragma once

#include <map>
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
  // A run of the listed tiles, of one sample: the unit of work that threads take.
  struct Piece {
    int sample;
    size_t first_tile, tiles;
  };

  // Lists the tiles to decode, and divides them into pieces.
  void PlanPieces();

  // Decodes all samples that can be; `failures_` says which cannot.
  void Decode(dali::Workspace &ws, dali::TensorList<dali::CPUBackend> &output);
  void DecodePiece(const Piece &piece, dali::TensorList<dali::CPUBackend> &output, bool bypass_cache);

  EncodedBatch batch_;

  // Of the current batch; members, so that their memory is not allocated anew for each.
  std::vector<l3_region_tile> tiles_;  // of all samples
  std::vector<Piece> pieces_;
  struct Failure {
    size_t first_tile;  // of the piece
    l3_error error;
  };
  std::mutex failures_mutex_;
  std::map<int, Failure> failures_;  // of each sample that has any: that of its first piece
};

}  // namespace dali_l3
