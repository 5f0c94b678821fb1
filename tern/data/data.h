// Gathers the public headers of the room: data sets, samplers, the DataLoader, pictures and transforms.
#pragma once

#include "tern/data/cifar10.h"
#include "tern/data/data_loader.h"
#include "tern/data/dataset.h"
#include "tern/data/digits.h"
#include "tern/data/example.h"
#include "tern/data/image.h"
#include "tern/data/image_folder.h"
#include "tern/data/image_tensors.h"
#include "tern/data/iterable_dataset.h"
#include "tern/data/mnist.h"
#include "tern/data/resize.h"
#include "tern/data/samplers.h"
#include "tern/data/transforms.h"
