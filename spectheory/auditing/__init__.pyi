from .subjects.sampler_verifiers import black_box as black_box
from .subjects.sampler_verifiers import per_sample as per_sample
from .verdicts.audit_certificate import AuditCertificate as AuditCertificate
from .verdicts.chi_squared import sampled_verdict as sampled_verdict
from .verdicts.release_history import history as history
from .verdicts.sampler_audit import audit as audit
