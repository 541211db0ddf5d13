#include "cli/diagnose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace xpu::cli {
namespace {

using testing::HasSubstr;

class Diagnose : public testing::Test {
 protected:
  Diagnose() {
    std::string path = testing::TempDir() + "diagnose_XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~Diagnose() override { std::filesystem::remove_all(folder_); }

  /// A program with the loader in memory and everything as we gave it.
  ImageSight healthy() const {
    ImageSight image;
    image.pid = 7;
    image.executable = "/usr/bin/prog";
    image.looks = 10;
    image.environment_known = image.has_record = image.has_layers = true;
    image.layers = kExpected.layers;
    image.loader = "/usr/lib/libOpenCL.so.1";
    image.loader_knows_layers = true;
    return image;
  }

  std::string library(const char* name, const char* contents) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << contents;
    return path;
  }

  Diagnosis diagnose_one(const ImageSight& image) {
    return diagnose(std::span(&image, 1), kExpected, 1'000'000, [this](const ImageSight&) {
      ++trials_;
      return linker_text_;
    });
  }

  const Expected kExpected{"/a.so:/lib/ours.so", "/lib/ours.so"};
  std::string folder_;
  std::optional<std::string> linker_text_;
  int trials_ = 0;
};

TEST_F(Diagnose, WithoutALoaderSaysSo) {
  ImageSight image = healthy();
  image.loader.clear();
  EXPECT_EQ(diagnose_one(image).reason, Reason::no_loader);
  EXPECT_EQ(trials_, 0);
}

TEST_F(Diagnose, ADriverUsedWithoutLoaderIsNamed) {
  ImageSight image = healthy();
  image.loader.clear();
  image.files = {library("libdriver.so", "clIcdGetPlatformIDsKHR")};
  const Diagnosis diagnosis = diagnose_one(image);
  EXPECT_EQ(diagnosis.reason, Reason::no_loader);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("libdriver.so directly"));
}

TEST_F(Diagnose, TooFewLooksSayNothing) {
  ImageSight image = healthy();
  image.loader.clear();
  image.looks = 2;
  EXPECT_EQ(diagnose_one(image).reason, Reason::unknown);
  EXPECT_EQ(diagnose({}, kExpected, 0, nullptr).reason, Reason::unknown);
}

TEST_F(Diagnose, ALoaderWithoutLayersIsNamed) {
  ImageSight image = healthy();
  image.loader_knows_layers = false;
  const Diagnosis diagnosis = diagnose_one(image);
  EXPECT_EQ(diagnosis.reason, Reason::loader_without_layers);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("/usr/lib/libOpenCL.so.1"));
}

TEST_F(Diagnose, RaisedPrivilegesComeBeforeEverythingThatFollowsFromThem) {
  ImageSight image = healthy();
  image.privileged = true;
  image.has_record = false;
  EXPECT_EQ(diagnose_one(image).reason, Reason::raised_privileges);
  image.loader.clear();
  EXPECT_EQ(diagnose_one(image).reason, Reason::raised_privileges);
  image.layer_mapped = true;
  EXPECT_EQ(diagnose_one(image).reason, Reason::raised_privileges);
}

TEST_F(Diagnose, AClearedEnvironmentIsSeen) {
  ImageSight image = healthy();
  image.has_record = image.has_layers = false;
  EXPECT_EQ(diagnose_one(image).reason, Reason::cleared_environment);
  image.has_record = true;
  EXPECT_THAT(diagnose_one(image).sentence, HasSubstr("without OPENCL_LAYERS"));
}

TEST_F(Diagnose, OtherLayersInTheEnvironmentAreShown) {
  ImageSight image = healthy();
  image.layers = "/theirs.so";
  const Diagnosis diagnosis = diagnose_one(image);
  EXPECT_EQ(diagnosis.reason, Reason::other_tool);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("OPENCL_LAYERS=/theirs.so"));
}

TEST_F(Diagnose, AnotherLayerInMemoryIsNamedThoughTheEnvironmentWasOurs) {
  ImageSight image = healthy();
  image.files = {image.loader, library("libtheirs.so", "..clInitLayer..")};
  const Diagnosis diagnosis = diagnose_one(image);
  EXPECT_EQ(diagnosis.reason, Reason::other_tool);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("libtheirs.so"));
}

TEST_F(Diagnose, TheLinkersTextIsGiven) {
  linker_text_ = "libxpu.so.0: cannot open";
  const Diagnosis diagnosis = diagnose_one(healthy());
  EXPECT_EQ(diagnosis.reason, Reason::layer_not_loadable);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("libxpu.so.0: cannot open"));
  EXPECT_EQ(trials_, 1);
}

TEST_F(Diagnose, AProgramForAnotherMachineCannotLoadTheLayer) {
  ImageSight image = healthy();
  image.foreign_machine = "a 32-bit program";
  EXPECT_EQ(diagnose_one(image).reason, Reason::layer_not_loadable);
  EXPECT_EQ(trials_, 0);
}

TEST_F(Diagnose, ADriverInUseWithALoadableLayerMeansThatTheEnvironmentChanged) {
  ImageSight image = healthy();
  image.files = {image.loader, library("libdriver.so", "clIcdGetPlatformIDsKHR")};
  EXPECT_EQ(diagnose_one(image).reason, Reason::cleared_environment);
}

TEST_F(Diagnose, ALoaderThatNobodyCalledIsNoFailure) { EXPECT_EQ(diagnose_one(healthy()).reason, Reason::no_call); }

TEST_F(Diagnose, TheLayerInMemoryMeansThatNothingWasSubmitted) {
  ImageSight image = healthy();
  image.layer_mapped = true;
  EXPECT_EQ(diagnose_one(image).reason, Reason::no_command);
}

TEST_F(Diagnose, AProgramOfLibxpuThatOpenedNoDeviceNeedsNoOpenClLoader) {
  ImageSight image = healthy();
  image.loader.clear();
  image.files = {"/usr/lib/libc.so.6", "/opt/lib/libxpu.so.0.1.0"};
  const Diagnosis diagnosis = diagnose_one(image);
  EXPECT_EQ(diagnosis.reason, Reason::no_command);
  EXPECT_EQ(diagnosis.sentence, "prog used libxpu but no device of it");
  image.has_layers = false;  // it needs none
  EXPECT_EQ(diagnose_one(image).reason, Reason::no_command);
  image.has_record = false;
  EXPECT_EQ(diagnose_one(image).reason, Reason::cleared_environment);
  image.privileged = true;
  EXPECT_EQ(diagnose_one(image).reason, Reason::raised_privileges);
}

TEST_F(Diagnose, OfAProgramWithBothALoaderIsWhatIsInTheWay) {
  ImageSight image = healthy();
  image.loader_knows_layers = false;
  image.files = {image.loader, "/opt/lib/libxpu.so.0"};
  EXPECT_EQ(diagnose_one(image).reason, Reason::loader_without_layers);
}

TEST_F(Diagnose, WhatAProgramExecutedInItsOwnPlaceCountsMore) {
  ImageSight first = healthy();
  ImageSight second = healthy();
  second.has_record = second.has_layers = false;
  second.files = {second.loader, library("libdriver.so", "clIcdGetPlatformIDsKHR")};
  const ImageSight images[] = {first, second};
  EXPECT_EQ(diagnose(images, kExpected, 0, [](const ImageSight&) { return std::nullopt; }).reason, Reason::cleared_environment);
}

TEST_F(Diagnose, TheLayerIsTriedOnceHoweverManyProcessesThereAre) {
  const ImageSight images[] = {healthy(), healthy(), healthy()};
  EXPECT_EQ(diagnose(images, kExpected, 0,
                     [this](const ImageSight&) {
                       ++trials_;
                       return linker_text_;
                     })
                .reason,
            Reason::no_call);
  EXPECT_EQ(trials_, 1);
}

TEST_F(Diagnose, TheProcessWithTheLoaderIsTheOneThatCounts) {
  ImageSight shell = healthy();
  shell.loader.clear();
  shell.has_record = false;
  ImageSight program = healthy();
  program.loader_knows_layers = false;
  const ImageSight images[] = {shell, program};
  EXPECT_EQ(diagnose(images, kExpected, 0, nullptr).reason, Reason::loader_without_layers);
}

}  // namespace
}  // namespace xpu::cli
