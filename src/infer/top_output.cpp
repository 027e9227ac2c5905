#include "infer/top_output.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "grid/agreement.hpp"
#include "infer/scores.hpp"
#include "infer/token_bytes.hpp"

namespace kzero::infer {

namespace {

/// Scores as another model does. Each call also finds its batch's top tokens, and the root appends
/// those of all ranks to the file.
class TeachingModel : public ForwardModel {
 public:
  TeachingModel(ForwardModel& inner, const grid::Group& world, const grid::Group& data,
                storage::AtomicFile* file, TaughtRows rows)
      : inner_(inner),
        world_(world),
        data_(data),
        file_(file),
        rows_(std::move(rows)),
        plan_(batch_plan(inner, data, rows_.count)) {}

  const ForwardShape& shape() const override { return inner_.shape(); }
  const model::SequenceRank& part() const override { return inner_.part(); }
  const memory::Bytes& planned() const override { return inner_.planned(); }
  Index parameters() const override { return inner_.parameters(); }

  void token_losses(std::span<const Token> inputs, std::span<const Token> targets,
                    std::span<float> losses) override {
    const auto count = inputs.size() * static_cast<std::size_t>(shape().top);
    tokens_.resize(count), ln_p_.resize(count);
    inner_.top_losses(inputs, targets, losses, tokens_, ln_p_);
    const std::vector<std::string> parts = data_.gather(inputs.empty() ? "" : own_positions());
    grid::collectively(world_, [&] {
      if (file_ == nullptr) return;
      for (const std::size_t rank : ranks_in_order())
        file_->append(std::as_bytes(std::span(parts[rank])));
    });
    ++round_;
  }

  void top_losses(std::span<const Token> inputs, std::span<const Token> targets,
                  std::span<float> losses, std::span<Token> tokens,
                  std::span<float> ln_p) override {
    inner_.top_losses(inputs, targets, losses, tokens, ln_p);
  }

 private:
  /// The bytes of those positions of this rank's part of the batch that the data has.
  std::string own_positions() const {
    const Index length = shape().sequence, first = plan_.first_sample(data_.rank(), round_);
    const Index own = shape().batch * length / part().size, begin = part().rank * own;
    std::string bytes;
    for (Index at = begin; at < begin + own;) {
      const Index row = first + at / length, place = at % length;
      const Index end = std::min(begin + own, at - place + length);  // of the row here
      const Index there = row < rows_.count ? rows_.length(row) : 0;
      const Index count = std::clamp<Index>(there - place, 0, end - at);
      const auto from = static_cast<std::size_t>((at - begin) * shape().top);
      const auto values = static_cast<std::size_t>(count * shape().top);
      bytes += data::teacher_positions(std::span(tokens_).subspan(from, values),
                                       std::span(ln_p_).subspan(from, values), shape().top);
      at = end;
    }
    return bytes;
  }

  /// The data ranks in the order of their parts in this round.
  std::vector<std::size_t> ranks_in_order() const {
    std::vector<std::size_t> ranks(static_cast<std::size_t>(data_.size()));
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    std::ranges::sort(
        ranks, {}, [&](std::size_t rank) { return plan_.part(static_cast<Index>(rank), round_); });
    return ranks;
  }

  ForwardModel& inner_;
  const grid::Group& world_;
  const grid::Group& data_;
  storage::AtomicFile* file_;  // null but on the root
  TaughtRows rows_;
  data::BatchPlan plan_;
  Index round_ = 0;
  std::vector<Token> tokens_;  // of a batch
  std::vector<float> ln_p_;
};

std::uint64_t content_of(const grid::Group& world, const data::DataFiles& files) {
  std::vector<std::uint64_t> sum(1);
  grid::collectively(world, [&] { sum[0] = files.content_sum(world.rank(), world.size()); });
  world.sum(sum);
  return sum[0];
}

}  // namespace

TaughtRows taught_rows(const InputFile& input, Index sequence) {
  if (const auto& documents = input.documents)
    return {documents->documents(), [documents](Index row) { return documents->length(row); }};
  const Index all = input.tokens->size - 1;
  return {ceil_div(all, sequence),
          [all, sequence](Index row) { return std::min(sequence, all - row * sequence); }};
}

TopOutput::TopOutput(const grid::Group& world, const std::string& path) : world_(world) {
  grid::collectively(world, [&] {
    if (world.is_root()) file_.emplace(path);
  });
}

std::unique_ptr<ForwardModel> TopOutput::begin(const Source& source, const InputFile& input,
                                               ForwardModel& model, const grid::Group& data,
                                               const std::string& tokenizer) {
  const bool has_documents = input.documents != nullptr;
  const data::TeacherFacts facts{
      .top = model.shape().top,
      .positions = has_documents ? input.documents->size() : input.tokens->size - 1,
      .vocab = source.config.model.vocab,
      .sequence = has_documents ? 0 : model.shape().sequence,
      .model = weights_hash(world_, source),
      .tokenizer = tokenizer.empty() ? 0 : tokenizer_hash(tokenizer),
      .content = content_of(world_, *input.files)};
  grid::collectively(world_, [&] {
    if (file_) file_->append(data::teacher_header(facts));
  });
  return std::make_unique<TeachingModel>(model, world_, data, file_ ? &*file_ : nullptr,
                                         taught_rows(input, model.shape().sequence));
}

void TopOutput::finish() {
  grid::collectively(world_, [&] {
    if (file_) file_->finish();
  });
}

}  // namespace kzero::infer
