//! Which fields tell "not there" from zero. The API drops all other fields of built-in kinds that are false, 0 or empty:
//! in its own types they can't be missing, and what is zero is not written.

/// Fields that can be zero, by name. Some are so in one type only; zeros are kept in all of them then.
const NULLABLE: &str = "\
activeDeadlineSeconds adminAccess allNodes allocateLoadBalancerNodePorts allowMultipleAllocations \
allowPrivilegeEscalation allowVolumeExpansion apiGroup appProtocol attachRequired automountServiceAccountToken \
averageUtilization backoffLimit backoffLimitPerIndex bindsToNode blockOwnerDeletion borrowingLimitPercent cachingMode \
collisionCount completionMode completions containerName controller count currentAverageUtilization \
currentCPUUtilizationPercentage defaultMode deletionGracePeriodSeconds deprecationWarning endPort error errorCode expirationSeconds \
failedIndexes failedJobsHistoryLimit failurePolicy fsGroup fsGroupChangePolicy fsType gmsaCredentialSpec \
holderIdentity hostProcess hostUsers hostname hostnameOverride immutable ingressClassName initiatorName \
internalTrafficPolicy ipFamilyPolicy ipMode kind leaseDurationSeconds leaseTransitions labelSelectorPath lendablePercent \
loadBalancerClass localhostProfile lun managedBy manualSelector matchPolicy maxExpirationSeconds maxFailedIndexes \
message maxItems maxLength maxProperties maximum minDomains minItems minLength minProperties minReplicas minimum mode mountPropagation multipleOf name namespace nodeAffinityPolicy nodeTaintsPolicy \
nominalConcurrencyShares observedGeneration optional parallelism parameterNotFoundAction partition path pathType \
podGroupName podInfoOnMount podReplacementPolicy port preemptionPolicy priority privileged procMount \
progressDeadlineSeconds readOnlyRootFilesystem ready reclaimPolicy recursiveReadOnly reinvocationPolicy replicas \
requiresRepublish resourceClaimName resourceClaimTemplateName revisionHistoryLimit runAsGroup runAsNonRoot runAsUser \
runAsUserName runtimeClassName scope seLinuxChangePolicy seLinuxMount selectPolicy service serving \
setHostnameAsFQDN shareProcessNamespace sideEffects signerName stabilizationWindowSeconds started \
startingDeadlineSeconds stopSignal storageCapacity storageClassName strategy succeededCount succeededIndexes \
successfulJobsHistoryLimit supplementalGroupsPolicy suspend targetCPUUtilizationPercentage terminating \
terminatingReplicas terminationGracePeriodSeconds timeZone tolerationSeconds trafficDistribution \
ttlSecondsAfterFinished uid unhealthyPodEvictionPolicy url version volumeAttributesClassName \
volumeBindingMode volumeMode x-kubernetes-preserve-unknown-fields zone";

/// A field of this name keeps a zero.
pub fn is_nullable(field: &str) -> bool {
    NULLABLE.split(' ').any(|known| known == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_zero_is_kept_where_it_means_something() {
        assert!(is_nullable("replicas") && is_nullable("runAsUser"));
        assert!(!is_nullable("hostNetwork") && !is_nullable("minReadySeconds") && !is_nullable("restartPolicy"));
    }
}
