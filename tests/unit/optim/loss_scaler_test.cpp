#include "optim/loss_scaler.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace kzero::optim {
namespace {

deck::Optimizer scaler_settings() {
  deck::Optimizer o;
  o.loss_scale = 1024, o.loss_scale_window = 3, o.max_skipped = 4;
  return o;
}

TEST(LossScaler, HalvesAtEveryOverflowAndDoublesAfterAWindowOfGoodSteps) {
  LossScaler scaler(Dtype::fp16, scaler_settings());
  EXPECT_EQ(scaler.scale(), 1024);
  scaler.update(false);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_EQ(scaler.skipped(), 2);
  EXPECT_EQ(scaler.skipped_in_a_row(), 2);
  scaler.update(true);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_EQ(scaler.skipped_in_a_row(), 0);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 128) << "an overflow starts the window anew";
  for (int i = 0; i < 3; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_EQ(scaler.good_steps(), 0);
  EXPECT_EQ(scaler.skipped(), 3);
}

TEST(LossScaler, AStepThatIsLeftOutIsNoOverflow) {
  LossScaler scaler(Dtype::fp16, scaler_settings());
  scaler.update(true);
  for (int i = 0; i < 9; ++i) scaler.leave_out();
  EXPECT_EQ(scaler.skipped(), 9);
  EXPECT_EQ(scaler.skipped_in_a_row(), 0);
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_EQ(scaler.good_steps(), 1);
  EXPECT_NO_THROW(scaler.require_progress());
}

TEST(LossScaler, ASpikeLeavesTheScaleAlone) {
  LossScaler scaler(Dtype::fp16, scaler_settings());
  scaler.update(true);
  scaler.leave_out_spike();
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_EQ(scaler.good_steps(), 1);
  EXPECT_EQ(scaler.skipped(), 1);
  EXPECT_EQ(scaler.skipped_in_a_row(), 1);
  EXPECT_EQ(scaler.spikes_in_a_row(), 1);
  scaler.update(true);
  EXPECT_EQ(scaler.skipped_in_a_row(), 0);
  EXPECT_EQ(scaler.spikes_in_a_row(), 0);
}

TEST(LossScaler, EndsARunThatKeepsSpiking) {
  LossScaler scaler(Dtype::fp32, scaler_settings());
  for (int i = 0; i < 2; ++i) scaler.leave_out_spike();
  scaler.update(false);
  EXPECT_NO_THROW(scaler.require_progress());
  scaler.leave_out_spike();
  try {
    scaler.require_progress();
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    EXPECT_NE(std::string(error.what())
                  .find("4 steps in a row were skipped (optimizer.max_skipped "
                        "= 4), 3 of them because"),
              std::string::npos)
        << error.what();
  }
}

TEST(LossScaler, ARunMayEndOnASpike) {
  LossScaler first(Dtype::fp32, scaler_settings()), second(Dtype::fp32, scaler_settings());
  for (int i = 0; i < 3; ++i) first.leave_out_spike();
  EXPECT_NO_THROW(first.require_good_end());
  second.restore(1, 0, 3, 3, 3);
  EXPECT_NO_THROW(second.require_good_end());
  second.update(false);
  EXPECT_THROW(second.require_good_end(), Error);
}

TEST(LossScaler, StaysBetweenItsLimits) {
  deck::Optimizer o = scaler_settings();
  o.loss_scale_window = 1, o.max_skipped = 1000;
  LossScaler scaler(Dtype::fp16, o);
  for (int i = 0; i < 40; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 0x1p24);
  for (int i = 0; i < 80; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 0x1p-24);
}

TEST(LossScaler, IsOneInOtherPrecisionsAndStillCountsSkippedSteps) {
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16}) {
    LossScaler scaler(precision, scaler_settings());
    for (int i = 0; i < 10; ++i) scaler.update(true);
    scaler.update(false);
    EXPECT_EQ(scaler.scale(), 1);
    EXPECT_EQ(scaler.skipped(), 1);
  }
}

TEST(LossScaler, EndsARunThatKeepsFailing) {
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    LossScaler scaler(precision, scaler_settings());
    for (int i = 0; i < 3; ++i) scaler.update(false);
    scaler.update(true);  // breaks the row of skipped steps
    for (int i = 0; i < 3; ++i) scaler.update(false);
    EXPECT_NO_THROW(scaler.require_progress());
    scaler.update(false);
    try {
      scaler.require_progress();
      FAIL() << "no Error was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::diverged);
      EXPECT_NE(std::string(error.what()).find("4 steps in a row (optimizer.max_skipped = 4"),
                std::string::npos);
    }
  }
}

TEST(LossScaler, ARunDoesNotEndWellOnSkippedSteps) {
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    LossScaler scaler(precision, scaler_settings());
    EXPECT_NO_THROW(scaler.require_good_end());
    // fp16's dynamic scale adapts by skipping a step now and then.
    const int max = precision == Dtype::fp16 ? 1 : 0;
    for (int i = 0; i < max; ++i) scaler.update(false);
    EXPECT_NO_THROW(scaler.require_good_end());
    scaler.update(false);
    EXPECT_THROW(scaler.require_good_end(), Error);
    scaler.update(true);
    EXPECT_NO_THROW(scaler.require_good_end());
  }
}

TEST(LossScaler, GoesOnFromRestoredValues) {
  LossScaler first(Dtype::fp16, scaler_settings()), second(Dtype::fp16, scaler_settings());
  for (const bool finite : {false, true, true}) first.update(finite);
  second.restore(first.scale(), first.good_steps(), first.skipped(), first.skipped_in_a_row());
  for (const bool finite : {true, false, true, true, true, false, false}) {
    first.update(finite);
    second.update(finite);
    EXPECT_EQ(first.scale(), second.scale());
    EXPECT_EQ(first.good_steps(), second.good_steps());
    EXPECT_EQ(first.skipped(), second.skipped());
    EXPECT_EQ(first.skipped_in_a_row(), second.skipped_in_a_row());
  }
  LossScaler other(Dtype::bf16, scaler_settings());
  other.restore(512, 2, 1, 0);
  EXPECT_EQ(other.scale(), 1) << "a checkpoint of another precision does not bring its scale";
}

}  // namespace
}  // namespace kzero::optim
