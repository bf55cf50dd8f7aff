package adapter_test

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/nodeactor/nodeactor/store/adapter"
)

// TestConformance runs the judges that upstream's own storages are held to and that need nothing but a storage.
func TestConformance(t *testing.T) {
	for name, run := range map[string]func(context.Context, *testing.T, storage.Interface){
		"CreateWithKeyExist":                         storagetesting.RunTestCreateWithKeyExist,
		"Get":                                        storagetesting.RunTestGet,
		"UnconditionalDelete":                        storagetesting.RunTestUnconditionalDelete,
		"ConditionalDelete":                          storagetesting.RunTestConditionalDelete,
		"DeleteWithSuggestion":                       storagetesting.RunTestDeleteWithSuggestion,
		"DeleteWithSuggestionAndConflict":            storagetesting.RunTestDeleteWithSuggestionAndConflict,
		"DeleteWithSuggestionOfDeletedObject":        storagetesting.RunTestDeleteWithSuggestionOfDeletedObject,
		"ValidateDeletionWithSuggestion":             storagetesting.RunTestValidateDeletionWithSuggestion,
		"ValidateDeletionWithOnlySuggestionValid":    storagetesting.RunTestValidateDeletionWithOnlySuggestionValid,
		"DeleteWithConflict":                         storagetesting.RunTestDeleteWithConflict,
		"PreconditionalDeleteWithSuggestion":         storagetesting.RunTestPreconditionalDeleteWithSuggestion,
		"PreconditionalDeleteWithOnlySuggestionPass": storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass,
		"ListPaging":                                 storagetesting.RunTestListPaging,
		"GetListRecursivePrefix":                     storagetesting.RunTestGetListRecursivePrefix,
		"KeySchema":                                  storagetesting.RunTestKeySchema,
		"GuaranteedUpdateWithConflict":               storagetesting.RunTestGuaranteedUpdateWithConflict,
		"GuaranteedUpdateWithSuggestionAndConflict":  storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict,
		"NamespaceScopedList":                        storagetesting.RunTestNamespaceScopedList,
		"DeleteTriggerWatch":                         storagetesting.RunTestDeleteTriggerWatch,
		"WatchFromNonZero":                           storagetesting.RunTestWatchFromNonZero,
		"WatchContextCancel":                         storagetesting.RunTestWatchContextCancel,
		"WatchDeleteEventObjectHaveLatestRV":         storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV,
		"WatchInitializationSignal":                  storagetesting.RunTestWatchInitializationSignal,
		"SendInitialEventsBackwardCompatibility":     storagetesting.RunSendInitialEventsBackwardCompatibility,
		"WatchSemantics":                             storagetesting.RunWatchSemantics,
		"WatchSemanticInitialEventsExtended":         storagetesting.RunWatchSemanticInitialEventsExtended,
		"WatchListMatchSingle":                       storagetesting.RunWatchListMatchSingle,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, f := setup(t)
			run(ctx, t, f)
		})
	}
}

// TestConformanceSlow runs those that mostly wait.
func TestConformanceSlow(t *testing.T) {
	for name, run := range map[string]func(context.Context, *testing.T, storage.Interface){
		"CreateWithTTL":           storagetesting.RunTestCreateWithTTL,
		"GuaranteedUpdateWithTTL": storagetesting.RunTestGuaranteedUpdateWithTTL,
		"Watch":                   storagetesting.RunTestWatch,
		"ClusterScopedWatch":      storagetesting.RunTestClusterScopedWatch,
		"NamespaceScopedWatch":    storagetesting.RunTestNamespaceScopedWatch,
		"DelayedWatchDelivery":    storagetesting.RunTestDelayedWatchDelivery,
		"WatcherTimeout":          storagetesting.RunTestWatcherTimeout,
		"OptionalWatchBookmarksWithCorrectResourceVersion": storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, f := setup(t)
			run(ctx, t, f)
		})
	}
}

// TestConformanceTransformed runs those that change how values are transformed.
func TestConformanceTransformed(t *testing.T) {
	for name, run := range map[string]func(context.Context, *testing.T, storagetesting.InterfaceWithPrefixTransformer){
		"GuaranteedUpdateChecksStoredData":  storagetesting.RunTestGuaranteedUpdateChecksStoredData,
		"TransformationFailure":             storagetesting.RunTestTransformationFailure,
		"ListResourceVersionMatch":          storagetesting.RunTestListResourceVersionMatch,
		"WatchError":                        storagetesting.RunTestWatchError,
		"WatchErrorIsBlockingFurtherEvents": storagetesting.RunWatchErrorIsBlockingFurtherEvents,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, f := setup(t)
			run(ctx, t, f)
		})
	}
}

func TestCreate(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestCreate(ctx, t, f, f.invariants)
}

func TestGuaranteedUpdate(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestGuaranteedUpdate(ctx, t, f, f.invariants)
}

func TestList(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestList(ctx, t, f, f.compact, false, nil)
}

func TestConsistentList(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestConsistentList(ctx, t, f, f.increaseRV, false, true, false)
}

func TestGetListNonRecursive(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestGetListNonRecursive(ctx, t, f.increaseRV, f)
}

func TestCompactRevision(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestCompactRevision(ctx, t, f, f.increaseRV, f.compact)
}

func TestListInconsistentContinuation(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestListInconsistentContinuation(ctx, t, f, f.compact)
}

func TestWatchFromZero(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestWatchFromZero(ctx, t, f, f.compact)
}

func TestProgressNotify(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunOptionalTestProgressNotify(ctx, t, f, f.increaseRV)
}

func TestWatchDispatchBookmarkEvents(t *testing.T) {
	ctx, f := setup(t)
	storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, f, true)
}

// TestListCalls: how many requests a list costs upstream's engine has no counterpart, so only the results are judged.
func TestListCalls(t *testing.T) {
	for name, run := range map[string]func(context.Context, *testing.T, storage.Interface, storagetesting.CallsValidation){
		"ListContinuation":           storagetesting.RunTestListContinuation,
		"ListPaginationRareObject":   storagetesting.RunTestListPaginationRareObject,
		"ListContinuationWithFilter": storagetesting.RunTestListContinuationWithFilter,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, f := setup(t)
			run(ctx, t, f, nil)
		})
	}
}

func TestStats(t *testing.T) {
	for _, sized := range []bool{false, true} {
		ctx, f := setup(t, func(c *adapter.Config) { c.Transformer = nil })
		if sized {
			if err := f.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
		storagetesting.RunTestStats(ctx, t, f, testCodec(), identity.NewEncryptCheckTransformer(), sized)
	}
}

func unsafeDeletion(t *testing.T, on bool) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, on)
}

func TestUnreadableObjects(t *testing.T) {
	t.Run("MissingExpectedError", func(t *testing.T) {
		unsafeDeletion(t, true)
		codec := &failingCodec{Codec: testCodec()}
		ctx, f := setup(t, func(c *adapter.Config) { c.Codec = codec })
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, f, codec.set)
	})
	t.Run("ExpectedTransformError", func(t *testing.T) {
		unsafeDeletion(t, true)
		tr := &failingTransformer{Transformer: storagetesting.NewPrefixTransformer([]byte(valuePrefix), false)}
		ctx, f := setup(t, func(c *adapter.Config) { c.Transformer = tr })
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, tr.set)
	})
	t.Run("ExpectedDecodeError", func(t *testing.T) {
		unsafeDeletion(t, true)
		codec := &failingCodec{Codec: testCodec()}
		ctx, f := setup(t, func(c *adapter.Config) { c.Codec = codec })
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, codec.set)
	})
	t.Run("SuggestionAndMissingExpectedError", func(t *testing.T) {
		unsafeDeletion(t, true)
		ctx, f := setup(t)
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, f)
	})
	t.Run("ListAggregates", func(t *testing.T) {
		unsafeDeletion(t, true)
		ctx, f := setup(t)
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, f, errBitsFlipped)
	})
	t.Run("ListAborts", func(t *testing.T) {
		unsafeDeletion(t, false)
		ctx, f := setup(t)
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, f, errBitsFlipped)
	})
	t.Run("WatchUnsafeDelete", func(t *testing.T) {
		unsafeDeletion(t, true)
		ctx, f := setup(t)
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, f, errBitsFlipped)
	})
}
